// Sends one mail by SMTP (RFC 5321), and says in words why it was not accepted.

import { readFile } from 'node:fs/promises';
import { createTransport } from 'nodemailer';

export interface MailServer {
  /** `smtps:` is TLS from the beginning, `smtp:` begins it with STARTTLS (RFC 3207). */
  readonly url: string;
  /** Without it, a server without TLS gets nothing. */
  readonly allowsPlainText: boolean;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly passwordFile?: string | undefined;
  readonly from: string;
}

export interface Mail {
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly pictures: readonly { readonly name: string; readonly jpeg: Buffer }[];
}

/** Undefined: the server has accepted it. */
export type MailProblem = string | undefined;

const ANSWER_MS = 20_000;
const MAX_WORDS = 200;

/** Never rejects. */
export async function sendMail(server: MailServer, { to, subject, text, pictures }: Mail): Promise<MailProblem> {
  const { protocol, hostname, port } = new URL(server.url);
  const isTls = protocol === 'smtps:';
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const number = Number(port) || (isTls ? 465 : 587);
  try {
    const pass = server.password ?? (server.passwordFile && (await readFile(server.passwordFile, 'utf8')).trim());
    const transport = createTransport({
      host,
      port: number,
      secure: isTls,
      requireTLS: !server.allowsPlainText,
      ignoreTLS: false,
      ...(server.user === undefined ? {} : { auth: { user: server.user, pass: pass ?? '' } }),
      connectionTimeout: ANSWER_MS,
      greetingTimeout: ANSWER_MS,
      socketTimeout: ANSWER_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    const attachments = pictures.map(({ name, jpeg }) => ({
      filename: name,
      content: jpeg,
      contentType: 'image/jpeg',
    }));
    try {
      await transport.sendMail({ from: server.from, to: [...to], subject, text, attachments });
    } finally {
      transport.close();
    }
    return undefined;
  } catch (err) {
    return problemOf(err, `${host}:${number}`);
  }
}

function problemOf(err: unknown, where: string): string {
  const { code, response, message } = err as NodeJS.ErrnoException & { readonly response?: string };
  // The server's own words: they contain no password.
  const said = response === undefined ? '' : `: ${response.replaceAll(/\s+/g, ' ').slice(0, MAX_WORDS)}`;
  switch (code) {
    case 'EAUTH':
      return `${where} refuses user or password${said}`;
    case 'ETLS':
      return `${where} offers no TLS, or its certificate is not trusted`;
    case 'EENVELOPE':
      return `${where} refuses an address${said}`;
    case 'EMESSAGE':
      return `${where} refuses the mail${said}`;
    case 'ETIMEDOUT':
      return `${where} does not answer within ${ANSWER_MS / 1000} s`;
    case 'ENOENT':
    case 'EACCES':
      return 'mail.passwordFile cannot be read';
    default:
      return `${where} cannot be reached: ${message.slice(0, MAX_WORDS)}`;
  }
}
