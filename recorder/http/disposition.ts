// The header `Content-Disposition` of a download (RFC 6266).

/** A name that is not ASCII is sent twice: as RFC 8187 says, and, for programs without RFC 8187, with `-` for each other character. */
export function disposition(how: 'inline' | 'attachment', name: string): string {
  const ascii = name.replace(/[^ -~]|["\\]/g, '-');
  return `${how}; filename="${ascii}"${ascii === name ? '' : `; filename*=UTF-8''${encodeURIComponent(name).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)}`}`;
}
