"""Events as they are told to others: of everything together, and as CloudEvents that other systems understand."""
