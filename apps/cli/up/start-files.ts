import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { canonicalJson, isObject, JsonError, parseStrict } from '@plat/core'
import type { GatewayConfig } from '@plat/gateway'
import { pricingProblems } from '@plat/gateway/config-files'
import type { PlatFolder } from '../shared/home.ts'
import { CommandError } from '../shared/output.ts'
import { checkGatewayKeys } from '../validate/gateway-file.ts'
import { locateProblems } from '../validate/locate.ts'
import { gatewayKeys } from './up-config.ts'

const GATEWAY = 'gateway.json'
const PRICES = 'prices.json'
/** Files beside `resources/`. */
const FILES = [GATEWAY, 'exchange.json', PRICES] as const

/** Above this number of keys they are counted, not listed. */
const KEYS_MAX = 8

/** The files by name; null: there is no file. */
export type StartFiles = ReadonlyMap<string, Uint8Array | null>

export interface StartFilesOptions {
  readonly home: PlatFolder
  readonly config: Pick<GatewayConfig, 'pricingFile' | 'policyReloadSeconds' | 'listen'>
}

/** Reads the files beside `resources/`. */
export async function readStartFiles({ dir }: Pick<PlatFolder, 'dir'>): Promise<StartFiles> {
  const files = FILES.map(async (name) => [name, await readFile(join(dir, name)).catch(() => null)] as const)
  return new Map(await Promise.all(files))
}

export interface FileVersions {
  readonly atStart: StartFiles
  /** At the last report. */
  readonly previous: StartFiles
  readonly now: StartFiles
}

/** Lines about files that changed since the last report: what is in force, and what to do. */
export async function changedFiles(
  { atStart, previous, now }: FileVersions,
  options: StartFilesOptions,
): Promise<readonly string[]> {
  const lines: string[] = []
  for (const [name, bytes] of now) {
    if (digest(previous.get(name)) === digest(bytes)) continue
    const old = atStart.get(name) ?? null
    if (name === PRICES && isFollowed(options)) lines.push(...changedPrices(bytes, options.config))
    else if (digest(old) === digest(bytes)) lines.push(`${name} is as it was at the start, and in force`)
    else if (name === GATEWAY) lines.push(...(await changedGateway(old, bytes, options)))
    else lines.push(`${name} ${whatChanged(old, bytes)}, and is not in force: restart plat up`)
  }
  return lines
}

function digest(bytes: Uint8Array | null | undefined): string {
  return bytes == null ? '' : createHash('sha256').update(bytes).digest('base64')
}

function whatChanged(old: Uint8Array | null, bytes: Uint8Array | null): string {
  return old === null ? 'is new' : bytes === null ? 'was removed' : 'has changed'
}

/** The gateway follows the prices that were there at its start. */
function isFollowed({ home, config }: StartFilesOptions): boolean {
  return config.pricingFile === join(home.dir, PRICES)
}

function changedPrices(
  bytes: Uint8Array | null,
  { policyReloadSeconds }: StartFilesOptions['config'],
): readonly string[] {
  const [problem] = bytes === null ? ['was removed'] : pricingProblems(bytes)
  if (problem === undefined) return [`changed: ${PRICES}; in force within ${policyReloadSeconds} s`]
  return [`${PRICES}: ${problem}; the previous prices remain in force until it is fixed`]
}

/** The keys of gateway.json that a restart would bring into force, or the first reason why plat would not start with them. */
async function changedGateway(
  old: Uint8Array | null,
  bytes: Uint8Array | null,
  { home, config }: StartFilesOptions,
): Promise<readonly string[]> {
  const problem = await gatewayProblem(home, config.listen)
  if (problem !== null) return [`${problem}; plat up runs on with the previous file, and would not start with this one`]
  const keys = changedKeys('', jsonOf(old), jsonOf(bytes))
  if (keys.length === 0) return []
  const named = keys.length > KEYS_MAX ? `${keys.length} keys` : keys.join(', ')
  return [`${GATEWAY} ${whatChanged(old, bytes)}, and is not in force: restart plat up (${named})`]
}

async function gatewayProblem(home: PlatFolder, listen: string): Promise<string | null> {
  try {
    const keys = await gatewayKeys(home, { listen, identityURL: 'http://127.0.0.1' })
    const { errors } = checkGatewayKeys({ home, keys, rendered: home.rendered, env: process.env })
    return (await locateProblems(home.dir, errors))[0] ?? null
  } catch (error) {
    if (error instanceof CommandError) return error.message
    throw error
  }
}

function jsonOf(bytes: Uint8Array | null): unknown {
  try {
    return bytes === null ? {} : parseStrict(bytes)
  } catch (error) {
    if (error instanceof JsonError) return {}
    throw error
  }
}

/** Paths whose values differ: of objects down to the second level, such as `models.small`. */
function changedKeys(path: string, before: unknown, after: unknown): readonly string[] {
  if (!isObject(before) || !isObject(after))
    return canonicalJson(before ?? null) === canonicalJson(after ?? null) ? [] : [path]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    const inner = path === '' ? key : `${path}.${key}`
    const isLeaf = path !== '' || !isObject(before[key]) || !isObject(after[key])
    if (path === '' && key === '$schema') return []
    if (!isLeaf) return changedKeys(inner, before[key], after[key])
    return canonicalJson(before[key] ?? null) === canonicalJson(after[key] ?? null) ? [] : [inner]
  })
}
