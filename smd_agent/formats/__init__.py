"""The bytes and names of a run's files, both ways: everything here is pure, nothing opens a file."""
