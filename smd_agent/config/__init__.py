"""What the user can set: environment (`env`) and the hook file (`load`), turned into frozen `settings`."""
