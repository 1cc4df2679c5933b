// Which variant of the tests runs: `hack/test long` asks for everything.

export const LONG = process.env['LONG'] === '1';
