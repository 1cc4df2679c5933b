// The examples of "Authenticating Requests: Using the Authorization Header" in the reference of Amazon S3.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapedKey, NO_BODY, sha256Hex, signed } from './sign.ts';

const KEY = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
};
const HOST = 'https://examplebucket.s3.amazonaws.com';
const timeMs = Date.UTC(2013, 4, 24);

const EXAMPLES = [
  {
    name: 'GET of a range',
    request: { method: 'GET', url: '/test.txt', headers: { range: 'bytes=0-9' }, sha256: NO_BODY },
    signature: 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  },
  {
    name: 'PUT of an object whose key has a reserved character',
    request: {
      method: 'PUT',
      url: `/${escapedKey('test$file.text')}`,
      headers: { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' },
      sha256: sha256Hex('Welcome to Amazon S3.'),
    },
    signature: '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  },
  {
    name: 'a parameter without a value',
    request: { method: 'GET', url: '/?lifecycle', headers: {}, sha256: NO_BODY },
    signature: 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
  },
  {
    name: 'parameters, in any order',
    request: { method: 'GET', url: '/?prefix=J&max-keys=2', headers: {}, sha256: NO_BODY },
    signature: '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  },
];

for (const { name, request, signature } of EXAMPLES) {
  test(`Signature Version 4: ${name}`, () => {
    const { authorization } = signed({ ...request, url: new URL(request.url, HOST), timeMs }, KEY);
    assert.match(authorization, new RegExp(`Signature=${signature}$`));
  });
}

test('everything but unreserved characters and slashes is escaped in a key', () => {
  assert.equal(escapedKey("a b/ü~._-!*'()"), 'a%20b/%C3%BC~._-%21%2A%27%28%29');
});
