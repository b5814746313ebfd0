"""Values that are on an accelerator and come later. Nothing but the hook needs this package."""
