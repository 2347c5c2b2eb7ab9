"""Work to practise on. Uses public names only, as any app would."""
