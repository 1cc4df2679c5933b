import { test } from 'node:test';
import assert from 'node:assert/strict';
import { commandsPage, completion, settingsPage } from './manual.ts';

const USAGE = `Usage: recorder [--config FILE] [--version]
       recorder probe URL [--help]

  --config FILE    configuration
  --version        print the version, and exit
  probe            report what a camera is

SIGTERM closes all files and stops.
`;

test('recorder(8) has the usage of the program and of each command, under a title of its own', () => {
  const commands = ['Usage: recorder token create --name NAME\n\nMakes a token.\n'];
  const page = commandsPage({ version: '1.2.3', usage: USAGE, commands });
  assert.match(page, /^\.TH RECORDER 8 "" "kube-nvr 1\.2\.3"\n\.SH NAME\n/);
  assert.match(page, /\.SH SYNOPSIS\n\.nf\n {7}recorder \[\\-\\-config FILE\]/);
  assert.match(page, /SIGTERM closes all files and stops\./);
  assert.match(page, /\.SH RECORDER TOKEN CREATE\n\.nf\n/);
});

test('recorder(5) has each setting with its type, its default and its meaning', () => {
  const settings = [
    { key: 'record_path', type: 'path', fallback: 'required', meaning: 'Where `footage` is kept.' },
    { key: 'tls', type: 'text', fallback: 'auto', meaning: '.pem files' },
  ];
  const page = settingsPage({ version: '1.2.3', settings });
  assert.match(page, /\.TP\n\.B record_path\n\(path; required\) Where footage is kept\.\n/);
  assert.match(page, /\.TP\n\.B tls\n\(text; default auto\) \.pem files\n/);
});

test('no line of a text is read as a command of man(7), and no backslash as an escape', () => {
  const page = commandsPage({
    version: '1',
    usage: "Usage: recorder\n\n.so /etc/shadow\n'br\nC:\\new\n",
    commands: [],
  });
  assert.match(page, /\n\\&\.so \/etc\/shadow\n\\&'br\nC:\\enew\n/);
});

test('options and commands of the program are completed', () => {
  assert.match(completion(USAGE), /-W '--config --version probe --help'/);
});
