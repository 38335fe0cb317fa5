"""Decorators of classes and calls: what is typed from habit ends in an error that says what to type here."""
