import { existsSync } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { jsonProblem, readBounded, withFilesBelow } from '@plat/config'
import { isObject, JsonError, parseStrict, reasonOf } from '@plat/core'
import { gatewaySchema } from '@plat/gateway/config'
import { parseAddress } from '@plat/http'
import { isMissing } from '@plat/state'
import type { PlatFolder } from '../shared/home.ts'
import { CommandError } from '../shared/output.ts'

/** Largest file beside `resources/`, in bytes. */
export const MAX_FILE_BYTES = 16 * 1024 * 1024

/** gateway.json as keys and values; the gateway's loader validates them. */
type Keys = Record<string, unknown>

interface Addresses {
  readonly listen: string
  readonly identityURL: string
}

/**
 * Defaults of `plat up` below the user's `<dir>/gateway.json`: every file in `.plat/`, the prices of `<dir>/prices.json`, the
 * broker of this process, and a ledger record that is durable before a call is forwarded.
 */
function defaults(home: PlatFolder, addresses: Addresses, own: Keys): Keys {
  const prices = join(home.dir, 'prices.json')
  // A free port is not known before the listener is open.
  const publicURL = addresses.listen.endsWith(':0') ? null : `http://${addresses.listen}`
  return {
    listen: addresses.listen,
    identity: {
      jwksURL: `${addresses.identityURL}/.well-known/jwks.json`,
      issuer: 'plat-identity',
      ...(publicURL !== null && { resourceBaseURL: publicURL }),
    },
    policyFile: join(home.rendered, 'policies.json'),
    upstreamsFile: join(home.rendered, 'upstreams.json'),
    upstreamCredentialsDir: home.credentials,
    tokenExchangeURL: `${addresses.identityURL}/v1/exchange`,
    modelsFile: join(home.rendered, 'models.json'),
    a2a: {
      routesFile: join(home.rendered, 'agents.json'),
      ...(publicURL !== null && { publicURL, cardSigningKey: join(home.cardKeys, 'key.pem') }),
    },
    budgetsFile: join(home.rendered, 'budgets.json'),
    memoryFile: join(home.rendered, 'memory.json'),
    sovereigntyPolicyFile: join(home.rendered, 'sovereignty.json'),
    ...(existsSync(prices) && { pricingFile: prices }),
    auditPath: join(home.state, 'audit.jsonl'),
    auditFailurePolicy: 'closed',
    auditCheckpointKey: join(home.auditKeys, 'key.pem'),
    approvalStorePath: join(home.state, 'approvals.jsonl'),
    pinStorePath: join(home.state, 'pins.jsonl'),
    taintStorePath: join(home.state, 'taints.jsonl'),
    notifyOutboxPath: join(home.state, 'notifications.jsonl'),
    resourceAPI: { enabled: true, dir: join(home.dir, 'resources') },
    // Only local users who can read .plat/env have the token, so on loopback it may approve.
    adminAuth: { devTokenApprovers: isLoopback(adminAddress(addresses, own)) },
  }
}

/** Address of the admin API, from the user's keys or the defaults. */
function adminAddress({ listen }: Addresses, own: Keys): string {
  const named = [own.adminListen, own.listen].find((address) => typeof address === 'string' && address !== '')
  return typeof named === 'string' ? named : listen
}

function isLoopback(listen: string): boolean {
  const host = parseAddress(listen)?.host
  return host !== undefined && (host === 'localhost' || host === '::1' || host.startsWith('127.'))
}

/**
 * Merges the user's keys over the defaults: objects member by member; all other values are replaced. Relative paths of files are below the
 * directory, wherever plat was started.
 */
export async function gatewayKeys(home: PlatFolder, addresses: Addresses): Promise<Keys> {
  const path = join(home.dir, 'gateway.json')
  const own = await ownKeys(path)
  const placed = withFilesBelow(gatewaySchema(), own, home.dir)
  return merge(defaults(home, addresses, own), isObject(placed) ? placed : {})
}

/**
 * Returns the user's keys; none without a file. A file that is there but cannot be read, such as a link to nothing, counts as invalid: without its keys
 * the gateway would protect less.
 */
async function ownKeys(path: string): Promise<Keys> {
  const isThere = await lstat(path).then(
    () => true,
    (error: unknown) => !isMissing(error),
  )
  if (!isThere) return {}
  const bytes = await readBounded(path, MAX_FILE_BYTES).catch((error: unknown) => {
    throw new CommandError(`${path}: cannot be read: ${reasonOf(error)}`)
  })
  return parseOwn(path, bytes)
}

function parseOwn(path: string, bytes: Uint8Array): Keys {
  try {
    const value = parseStrict(bytes)
    if (isObject(value)) return value
    throw new CommandError(`${path}: must hold a JSON object`)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    const { line, message } = jsonProblem(bytes, error)
    throw new CommandError(`${path}:${line}: ${message}`)
  }
}

function merge(under: Keys, over: Keys): Keys {
  const merged: Keys = { ...under }
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key]
    merged[key] = isObject(below) && isObject(value) ? merge(below, value) : value
  }
  return merged
}
