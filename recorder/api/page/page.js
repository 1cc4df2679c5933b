export const pending = 'page';
