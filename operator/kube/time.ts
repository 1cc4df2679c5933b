// Formats times as the API server requires them.

/** metav1.MicroTime: the API server requires six decimals. */
export const microTime = (wallMs: number): string => new Date(wallMs).toISOString().replace('Z', '000Z');

/** metav1.Time: in whole seconds. */
export const secondTime = (wallMs: number): string => new Date(wallMs).toISOString().replace(/\.\d{3}Z$/, 'Z');
