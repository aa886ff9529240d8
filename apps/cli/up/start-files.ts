import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { readBounded } from '@plat/config'
import { canonicalJson, isObject, JsonError, parseStrict } from '@plat/core'
import type { GatewayConfig } from '@plat/gateway'
import { pricingProblems } from '@plat/gateway/config-files'
import type { PlatFolder } from '../shared/home.ts'
import { CommandError } from '../shared/output.ts'
import { checkGatewayKeys } from '../validate/gateway-file.ts'
import { locateProblems } from '../validate/locate.ts'
import { gatewayKeys, MAX_FILE_BYTES } from './up-config.ts'

const GATEWAY = 'gateway.json'
const PRICES = 'prices.json'
/** Read by the broker. */
const EXCHANGE = 'exchange.json'
/** Files beside `resources/`. */
const FILES = [GATEWAY, EXCHANGE, PRICES] as const

/** Above this number of keys they are counted, not listed. */
const KEYS_MAX = 8

/** The files by name; null: there is no file. */
type StartFiles = ReadonlyMap<string, Uint8Array | null>

/** The gateway, which reads some of the files by itself, and starts again with the others. */
export interface FollowedGateway {
  readonly config: Pick<GatewayConfig, 'pricingFile' | 'policyReloadSeconds' | 'listen'>
  /** Resolves to null, or to why the files on disk are not in force. */
  restart(): Promise<string | null>
}

/** Follows the files beside `resources/`. */
export class StartFileChanges {
  readonly #home: PlatFolder
  readonly #served: FollowedGateway
  /** At the last report. */
  #previous: StartFiles = new Map()
  #inForce = new Map<string, Uint8Array | null>()

  constructor(home: PlatFolder, served: FollowedGateway) {
    this.#home = home
    this.#served = served
  }

  async begin(): Promise<void> {
    this.#previous = await this.#read()
    this.#inForce = new Map(this.#previous)
  }

  async #read(): Promise<StartFiles> {
    const { dir } = this.#home
    const files = FILES.map(
      async (name) => [name, await readBounded(join(dir, name), MAX_FILE_BYTES).catch(() => null)] as const,
    )
    return new Map(await Promise.all(files))
  }

  /** Brings into force what it can, and returns lines about the files that changed since the last report. */
  async find(): Promise<readonly string[]> {
    const now = await this.#read()
    const previous = this.#previous
    this.#previous = now
    const lines: string[] = []
    for (const [name, bytes] of now) {
      if (digest(previous.get(name)) === digest(bytes)) continue
      lines.push(...(await this.#changed(name, bytes)))
    }
    return lines
  }

  async #changed(name: string, bytes: Uint8Array | null): Promise<readonly string[]> {
    const old = this.#inForce.get(name) ?? null
    // The gateway follows the prices that were there at its start.
    if (name === PRICES && this.#served.config.pricingFile === join(this.#home.dir, PRICES))
      return changedPrices(bytes, this.#served.config)
    if (digest(old) === digest(bytes)) return [`${name} is as it was before, and in force`]
    if (name === EXCHANGE) return [`${name} ${whatChanged(old, bytes)}, and is not in force: restart plat up`]
    const keys = name === GATEWAY ? changedKeys('', jsonOf(old), jsonOf(bytes)) : []
    const problem = await gatewayProblem(this.#home, this.#served.config.listen)
    if (problem !== null) return [`${problem}; the gateway runs on with the previous file`]
    if (name === GATEWAY && keys.length === 0) return []
    const named = keys.length > KEYS_MAX ? ` (${keys.length} keys)` : keys.length > 0 ? ` (${keys.join(', ')})` : ''
    const refused = await this.#served.restart()
    if (refused !== null) return [`${name} ${whatChanged(old, bytes)}${named}, and is not in force: ${refused}`]
    this.#inForce.set(name, bytes)
    return [`${name} ${whatChanged(old, bytes)}${named}, and is in force: the gateway was started again`]
  }
}

function digest(bytes: Uint8Array | null | undefined): string {
  return bytes == null ? '' : createHash('sha256').update(bytes).digest('base64')
}

function whatChanged(old: Uint8Array | null, bytes: Uint8Array | null): string {
  return old === null ? 'is new' : bytes === null ? 'was removed' : 'has changed'
}

function changedPrices(
  bytes: Uint8Array | null,
  { policyReloadSeconds }: FollowedGateway['config'],
): readonly string[] {
  const [problem] = bytes === null ? ['was removed'] : pricingProblems(bytes)
  if (problem === undefined) return [`changed: ${PRICES}; in force within ${policyReloadSeconds} s`]
  return [`${PRICES}: ${problem}; the previous prices remain in force until it is fixed`]
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
