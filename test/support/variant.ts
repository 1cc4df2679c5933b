// The variant of the tests: `hack/test long` runs everything.

export const LONG = process.env['LONG'] === '1';
