import assert from 'node:assert/strict';
import { createServer, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { sendMail, type MailServer } from './send.ts';

/** A mail server without TLS that speaks as RFC 5321 says; `answers` replaces its answers by the first word of a command. */
async function mailServer(t: TestContext, answers: Readonly<Record<string, string>> = {}) {
  const received: string[] = [];
  const server = createServer((socket) => {
    let isData = false;
    socket.on('error', () => {});
    socket.write('220 mail.example ESMTP\r\n');
    let rest = '';
    socket.on('data', (bytes) => {
      rest += bytes.toString('utf8');
      for (let end = rest.indexOf('\r\n'); end >= 0; end = rest.indexOf('\r\n')) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + 2);
        received.push(line);
        if (isData) {
          if (line !== '.') continue;
          isData = false;
          socket.write(`${answers['.'] ?? '250 accepted'}\r\n`);
          continue;
        }
        const [word = ''] = line.split(/[ :]/);
        const usual: Readonly<Record<string, string>> = {
          EHLO: '250-mail.example\r\n250 AUTH PLAIN',
          AUTH: '235 welcome',
          DATA: '354 go on',
          QUIT: '221 bye',
        };
        isData = word === 'DATA';
        socket.write(`${answers[word] ?? usual[word] ?? '250 ok'}\r\n`);
        if (word === 'QUIT') socket.end();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const settings = (changes: Partial<MailServer> = {}): MailServer => ({
    url: `smtp://127.0.0.1:${port}`,
    allowsPlainText: true,
    from: 'nvr@example.com',
    ...changes,
  });
  return { settings, received, where: `127.0.0.1:${port}`, server };
}

const MAIL = {
  to: ['guard@example.com', 'boss@example.com'],
  subject: 'Küche: not recorded',
  text: 'The camera does not answer.\n',
  pictures: [{ name: 'gate.jpg', jpeg: Buffer.from('a picture') }],
};

test('a mail reaches the server with its recipients, text and pictures', async (t) => {
  const { settings, received } = await mailServer(t);
  assert.equal(await sendMail(settings({ user: 'nvr', password: 'secret' }), MAIL), undefined);
  const text = received.join('\n');
  assert.match(text, /^MAIL FROM:<nvr@example\.com>/m);
  assert.match(text, /^RCPT TO:<guard@example\.com>/m);
  assert.match(text, /^RCPT TO:<boss@example\.com>/m);
  assert.match(text, /^Subject: =\?UTF-8\?.*K=C3=BCche/m);
  assert.match(text, /The camera does not answer\./);
  assert.ok(text.includes(Buffer.from('a picture').toString('base64')));
  assert.ok(text.includes(Buffer.from('\0nvr\0secret').toString('base64')));
});

test('a server that offers no TLS gets neither a password nor a mail, unless that is allowed', async (t) => {
  const { settings, received, where } = await mailServer(t, { STARTTLS: '502 no' });
  const problem = await sendMail(settings({ allowsPlainText: false, user: 'nvr', password: 'secret' }), MAIL);
  assert.equal(problem, `${where} offers no TLS, or its certificate is not trusted`);
  assert.doesNotMatch(received.join('\n'), /AUTH|MAIL FROM/);
});

test('what the server refuses is said in its words, without the password', async (t) => {
  for (const [answers, wanted] of [
    [{ AUTH: '535 wrong password' }, /refuses user or password: 535 wrong password/],
    [{ RCPT: '550 no such user' }, /refuses an address/],
    [{ '.': '552 too large' }, /refuses the mail: 552 too large/],
  ] as const) {
    const { settings } = await mailServer(t, answers);
    const problem = await sendMail(settings({ user: 'nvr', password: 'secret' }), MAIL);
    assert.match(problem ?? '', wanted);
    assert.doesNotMatch(problem ?? '', /secret/);
  }
});

test('a server that is away, and a password file that is missing, are said', async (t) => {
  const { settings, server, where } = await mailServer(t);
  const missing = settings({ user: 'nvr', passwordFile: '/none/password' });
  assert.equal(await sendMail(missing, MAIL), 'mail.passwordFile cannot be read');
  await new Promise((resolve) => server.close(resolve));
  assert.match((await sendMail(settings(), MAIL)) ?? '', new RegExp(`^${where} cannot be reached: `));
});
