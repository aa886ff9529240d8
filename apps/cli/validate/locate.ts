import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Problem } from '@plat/config'
import { partsOfLine } from '@plat/operator'
import { type FileStore, isClusterKind, isKind, type Kind, linesOf } from '@plat/resources'
import type { Warning } from './warnings/surroundings.ts'

/** Name of the user's configuration, beside resources/. */
const GATEWAY_JSON = 'gateway.json'

type Locator = Pick<FileStore, 'locate'>

/** Rewrites lines of refused resources so that they begin with file and line; those of whole files have them already. */
export function locateRefused(store: Locator, lines: readonly string[]): Promise<string[]> {
  return Promise.all(lines.map((line) => locatedRefusal(store, line)))
}

async function locatedRefusal(store: Locator, line: string): Promise<string> {
  const { object, why } = partsOfLine(line)
  const [kind = '', name = ''] = object.split(' ')
  if (!isKind(kind)) return line
  const path = why.slice(0, Math.max(0, why.indexOf(': ')))
  const field = path.startsWith('metadata.') ? path : `spec.${path}`
  const [place] = await store.locate(kind, keyOf(kind, name), [field])
  return `${place}: ${field}${why.slice(path.length)}`
}

function keyOf(kind: Kind, name: string) {
  const [namespace = '', own = ''] = isClusterKind(kind) ? ['', name] : name.split('/')
  return { namespace, name: own }
}

/** One line for each warning: `<file>:<line>: <path>: <problem>; <fix>`. */
export async function locateWarnings(store: Locator, dir: string, warnings: readonly Warning[]): Promise<string[]> {
  const config = await readFile(join(dir, GATEWAY_JSON), 'utf8').catch(() => '')
  const places = warnings.map(async ({ object, field }) =>
    object === null ? placeIn(config, field) : (await store.locate(object.kind, object.metadata, [field]))[0],
  )
  return (await Promise.all(places)).map((place, at) => `${place}: ${warnings[at]?.field}: ${warnings[at]?.text}`)
}

/** One line for each problem of the configuration. */
export async function locateProblems(dir: string, problems: readonly Problem[]): Promise<string[]> {
  const config = await readFile(join(dir, GATEWAY_JSON), 'utf8').catch(() => '')
  return problems.map(({ path, message }) => `${placeIn(config, path)}: ${path === '' ? '' : `${path}: `}${message}`)
}

function placeIn(text: string, path: string): string {
  return `${GATEWAY_JSON}:${linesOf(text, [path])[0] ?? 1}`
}
