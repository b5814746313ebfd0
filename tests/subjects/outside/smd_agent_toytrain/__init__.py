"""What another package needs to have trainings with toytrain saved."""
