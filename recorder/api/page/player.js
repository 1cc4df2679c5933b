export const pending = 'player';
