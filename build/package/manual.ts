// The manual pages of the packages, in man(7), and the completion of bash: made from the program's own descriptions of
// its commands and settings.

interface About {
  readonly version: string;
}

interface Setting {
  readonly key: string;
  readonly type: string;
  readonly fallback: string;
  readonly meaning: string;
}

/** recorder(8). `usage` is that of the program, `commands` are those of its commands, as `--help` prints them. */
export function commandsPage(about: About & { readonly usage: string; readonly commands: readonly string[] }): string {
  const { version, usage, commands } = about;
  return page('recorder', 8, version, [
    ['NAME', text('recorder - records network cameras')],
    ['SYNOPSIS', literal(usage.split('\n\n')[0]?.replace(/^Usage: /, '       ') ?? '')],
    ['OPTIONS AND COMMANDS', literal(usage.split('\n\n').slice(1).join('\n\n'))],
    ...commands.map((command): Section => [titleOf(command), literal(command.replace(/^Usage: /, '       '))]),
    [
      'FILES',
      literal(
        [
          '/etc/recorder/config.yaml       configuration: recorder(5)',
          '/etc/recorder/conf.d/*.yaml     more of it, read afterwards; cameras that the API adds',
          '/etc/recorder/recorder.lic      licence',
          '/var/lib/recorder               state, and the archive unless record_path names another place',
          '/var/log/recorder               log files',
        ].join('\n'),
      ),
    ],
    ['SEE ALSO', text('recorder(5), systemctl(1), journalctl(1)')],
  ]);
}

/** recorder(5). */
export const settingsPage = ({ version, settings }: About & { readonly settings: readonly Setting[] }): string =>
  page('recorder', 5, version, [
    ['NAME', text('recorder - configuration of the recorder')],
    [
      'DESCRIPTION',
      text(
        'The recorder reads /etc/recorder/config.yaml and then the files conf.d/*.yaml next to it, in the order of their names. ' +
          'Cameras of all files are added together; of every other setting, the last one counts. ' +
          'A key with [] applies to each entry of a list. recorder --check-config checks the files.',
      ),
    ],
    ['SETTINGS', settings.map(settingText).join('')],
    ['SEE ALSO', text('recorder(8)')],
  ]);

/** Completes options and commands by their names. */
export function completion(usage: string): string {
  const words = [...usage.matchAll(/^ {2}(--[a-z-]+|[a-z-]+)(?= |$)/gm)].map((match) => match[1] ?? '');
  return `# Completion of the command recorder for bash.
_recorder() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]}
  case $before in
    --config | --capture | --manifest | --key | --password-file | audit | verify) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -W '${[...new Set(words)].join(' ')} --help' -- "$word") ;;
  esac
}
complete -F _recorder recorder
`;
}

type Section = readonly [title: string, content: string];

const page = (name: string, section: number, version: string, sections: readonly Section[]): string =>
  `.TH ${name.toUpperCase()} ${section} "" "kube-nvr ${version}"\n` +
  sections.map(([title, content]) => `.SH ${title}\n${content}`).join('');

const titleOf = (usage: string): string =>
  (/^Usage: (recorder(?: [a-z][a-z-]*)+)/.exec(usage)?.[1] ?? 'recorder').toUpperCase();

const settingText = ({ key, type, fallback, meaning }: Setting): string => {
  const facts = [type, fallback === '' ? '' : fallback.startsWith('required') ? fallback : `default ${fallback}`];
  return `.TP\n.B ${escaped(key)}\n${text(`(${facts.filter((fact) => fact !== '').join('; ')}) ${meaning}`)}`;
};

const text = (paragraph: string): string => `${escaped(paragraph)}\n`;
const literal = (lines: string): string => `.nf\n${escaped(lines.trimEnd())}\n.fi\n`;

/**
 * Removes the Markdown marks of code. Escapes what has a meaning in man(7): a backslash, a hyphen, and a point or quote
 * at the start of a line.
 */
const escaped = (lines: string): string =>
  lines
    .replaceAll('`', '')
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');
