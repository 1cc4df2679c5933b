/** At most `most` of the words for a message whose length is limited, and how many more there are: `a, b and 3 more`. */
export function someOf(words: readonly string[], most: number): string {
  const more = words.length - most;
  return words.slice(0, most).join(', ') + (more > 0 ? ` and ${more} more` : '');
}
