// The header `Content-Disposition` of a download (RFC 6266).

/** For a name that is not ASCII, programs that do not know RFC 8187 get one with the other characters replaced. */
export function disposition(how: 'inline' | 'attachment', name: string): string {
  const ascii = name.replace(/[^ -~]|["\\]/g, '-');
  return `${how}; filename="${ascii}"${ascii === name ? '' : `; filename*=UTF-8''${encodeURIComponent(name).replace(/['()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)}`}`;
}
