// Paths of directories as the configuration writes them.

/** `/` stays as it is. */
export const withoutTrailingSlash = (path: string): string => path.replace(/(?<=.)\/+$/, '');
