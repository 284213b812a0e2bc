"""Views as they are kept: from what their user meant to what an engine is told, and to what is shown today."""
