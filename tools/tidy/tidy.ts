import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { LIMITS } from './limits.ts'
import { firstOfMap, linearRegexes } from './rules/cost.ts'
import { importCycles } from './rules/cycles.ts'
import { dialect, dialectInPage, dialectInPython, plainNames } from './rules/dialect.ts'
import { direction, faces, importCount, packageCircles } from './rules/imports.ts'
import {
  assertionShare,
  assertions,
  defaultExports,
  errorNames,
  escapes,
  fileLines,
  functionLines,
  parameters,
  usualLength,
} from './rules/shape.ts'
import { lostGenerators, promiseChecks } from './rules/waiting.ts'
import { waysOut } from './rules/ways-out.ts'
import { machineWords, metricNames, rawTime, undone } from './rules/words.ts'
import { type Finding, type Rule, readSource, type Source } from './source.ts'

/** Every rule that looks at one file alone. */
const RULES: readonly Rule[] = [
  ...[fileLines, functionLines, parameters, escapes, assertions, defaultExports, errorNames],
  ...[direction, faces, importCount, waysOut, rawTime, metricNames, undone, firstOfMap, linearRegexes, plainNames],
  promiseChecks,
]

/** Installed and generated folders. */
const NOT_OURS = new Set(['node_modules', '.git', '.cache', '.plat', 'dist', 'raw'])
const TEXT = /\.(?:ts|tsx|mts|mjs|js|json|jsonc|py|md|yaml|yml|html|css|sh|txt)$/
const CODE = /(?<!\.d)\.(?:ts|tsx|mts)$/
/** Pages that a program writes. */
const GENERATED = /^docs\/reference\//
const DATA = /(?:^|\/)(?:fixtures|golden)\//

/** The SDK for Python: every line of it is checked. Programs of examples quote others. */
const PYTHON = /^sdk\/.*\.py$/

/** Findings of the words of one page. Generated pages follow the tables that they are made from, which are checked. */
export function tidyPage(file: string, text: string): readonly Finding[] {
  if (PYTHON.test(file)) return dialectInPython(file, text)
  return file.endsWith('.md') && !GENERATED.test(file) ? dialectInPage(file, text) : []
}

/** Findings of one source, for the tests of the rules. */
export function tidySource(file: string, text: string): readonly Finding[] {
  const source = readSource(file, text)
  return RULES.flatMap((rule) => rule(source))
}

/** Findings of the whole repository, in the order of its files. `own` are words of this machine that no file may contain. */
export function tidyTree(root: string, own: readonly string[]): readonly Finding[] {
  const files = globSync('{**,.*/**}/*', { cwd: root, exclude: (name) => NOT_OURS.has(path.basename(name)) })
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => TEXT.test(file))
    .sort()
  const texts = new Map(files.map((file) => [file, readFileSync(path.join(root, file), 'utf8')]))
  const sources = files
    .filter((file) => CODE.test(file) && !DATA.test(file))
    .map((file) => readSource(file, texts.get(file) ?? ''))
  const findings = [
    ...sources.flatMap((source) => [...RULES, dialect].flatMap((rule) => rule(source))),
    ...tidySources(sources),
    ...[...texts].flatMap(([file, text]) => machineWords(file, text, own)),
    ...[...texts].flatMap(([file, text]) => tidyPage(file, text)),
  ]
  return findings.sort((a, b) => (a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1))
}

/** Findings that only all sources together show. */
export function tidySources(sources: readonly Source[]): readonly Finding[] {
  return [
    ...folders(sources),
    ...packageCircles(sources),
    ...importCycles(sources),
    ...lostGenerators(sources),
    ...usualLength(sources),
    ...assertionShare(sources),
  ]
}

/** One line a finding: `path:line rule: message`. */
export function formatFinding({ path: file, line, rule, message }: Finding): string {
  return `${file}:${line} ${rule}: ${message}`
}

function folders(sources: readonly Source[]): readonly Finding[] {
  const findings: Finding[] = []
  for (const { path: file } of sources) {
    const folder = path.posix.dirname(file)
    if (folder.split('/').length > LIMITS.folderDepth) {
      findings.push({
        path: file,
        line: 1,
        rule: 'depth',
        message: `deeper than ${LIMITS.folderDepth} folders: move it up`,
      })
    }
  }
  return findings
}
