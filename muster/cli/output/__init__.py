"""Values as text: tables, sentences, documents, units; pure but for what draws on the screen."""
