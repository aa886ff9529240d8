import { formatProblem } from '@plat/config'
import { buildInfo, type Clock, canonicalJson, type Ids } from '@plat/core'
import { budgetCurrencyOf, type Gateway, type GatewayConfig, loadGatewayConfig, startGateway } from '@plat/gateway'
import type { Log } from '@plat/process'
import type { FileStore } from '@plat/resources'
import { type PlatFolder, writePrivate } from '../shared/home.ts'
import { CommandError } from '../shared/output.ts'
import type { StdioSupervisor } from '../stdio/launch/supervisor.ts'
import { openKubectl } from './kubectl.ts'
import type { Problems } from './problems.ts'
import { gatewayKeys } from './up-config.ts'

type ServedOptions = {
  readonly home: PlatFolder
  /** Addresses of the gateway, of its resources for `kubectl`, and of the broker. */
  readonly listen: string
  readonly resourcesListen: string
  readonly identityURL: string
  readonly resourcesDir: string
  readonly store: FileStore
  /** Returns what finds the problems of resources with a configuration, for `GET /v1/problems`. */
  readonly problemsWith: (served: { readonly config: GatewayConfig }) => () => Promise<Problems>
  readonly adminToken: string
  readonly log: Log
  readonly clock: Clock
  readonly ids: Ids
} & StdioSupervisor['forGateway']

/** Keys whose values other terminals and the rendered resources depend on: they are in force after a restart of `plat up`. */
const FIXED = ['listen', 'adminListen', 'tls'] as const

type Keys = Readonly<Record<string, unknown>>

/** Reads the keys of the gateway, and the currency of its budgets, in which resources are rendered. */
export async function readKeys(home: PlatFolder, addresses: { readonly listen: string; readonly identityURL: string }) {
  const keys = await gatewayKeys(home, addresses)
  return { keys, currency: await budgetCurrencyOf(keys) }
}

interface Running {
  readonly config: GatewayConfig
  readonly gateway: Gateway
  close(): Promise<void>
}

/** The gateway of `plat up`, with its second listener for kubectl. It can be started again with other keys. */
export class ServedGateway {
  readonly #options: ServedOptions
  /** The keys in force, as written: a free port is a 0 in them. */
  #keys: Keys
  #currency: string
  #running: Running
  /** The last start or stop: they happen one after the other. */
  #last: Promise<unknown> = Promise.resolve()
  #isStopped = false

  private constructor(options: ServedOptions, given: { keys: Keys; currency: string }, running: Running) {
    this.#options = options
    this.#keys = given.keys
    this.#currency = given.currency
    this.#running = running
  }

  static async start(options: ServedOptions, given: { keys: Keys; currency: string }): Promise<ServedGateway> {
    return new ServedGateway(options, given, await startWith(options, given.keys))
  }

  get config(): GatewayConfig {
    return this.#running.config
  }

  get gateway(): Gateway {
    return this.#running.gateway
  }

  /**
   * Starts the gateway again with the keys that are on disk now, when its calls have ended or `shutdownTimeoutSeconds` have passed. Resolves to null,
   * or to why they are not in force; if it does not start with them, the previous keys remain in force.
   */
  restart(): Promise<string | null> {
    const next = this.#last.then(() => this.#restart())
    this.#last = next.catch(() => {})
    return next
  }

  async #restart(): Promise<string | null> {
    if (this.#isStopped) return 'plat up is ending'
    const { keys, currency } = await readKeys(this.#options.home, this.#options)
    const fixed = FIXED.filter((key) => canonicalJson(keys[key] ?? null) !== canonicalJson(this.#keys[key] ?? null))
    if (fixed.length > 0) return `restart plat up (${fixed.join(', ')})`
    if (currency !== this.#currency) return 'restart plat up (another currency of budgets)'
    const bound = this.#withPorts(keys)
    const before = this.#withPorts(this.#keys)
    await this.#running.close()
    this.#running = { ...this.#running, close: async () => {} }
    try {
      this.#running = await startWith(this.#options, bound)
      this.#keys = keys
      return null
    } catch (error) {
      return await this.#startedAgain(before, error)
    }
  }

  async #startedAgain(keys: Keys, problem: unknown): Promise<string> {
    try {
      this.#running = await startWith(this.#options, keys)
      return `${lineOf(problem)}; the gateway runs on with the previous file`
    } catch (error) {
      return `${lineOf(problem)}; the gateway does not start with the previous file either (${lineOf(error)}): restart plat up`
    }
  }

  /** Ports that were free at the start stay as they are: programs were given the addresses. */
  #withPorts(keys: Keys): Keys {
    const { port, adminUrl } = this.gateway
    const { listen, adminListen } = keys
    return {
      ...keys,
      ...(typeof listen === 'string' && { listen: withPort(listen, port) }),
      ...(typeof adminListen === 'string' && { adminListen: withPort(adminListen, Number(new URL(adminUrl).port)) }),
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#last
    await this.#running.close()
  }
}

function lineOf(error: unknown): string {
  const [line = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return line
}

function withPort(address: string, port: number): string {
  return address.endsWith(':0') ? `${address.slice(0, -1)}${port}` : address
}

/** The gateway loads the written file as usual, so that errors in the user's keys are reported as usual. */
async function startWith(options: ServedOptions, keys: Keys): Promise<Running> {
  const { home, store, resourcesDir, adminToken, log, clock, ids, stdioSocket, stdioReady } = options
  await writePrivate(home.gatewayConfig, `${JSON.stringify(keys, null, 2)}\n`)
  const loaded = loadGatewayConfig({ env: {}, flags: { config: home.gatewayConfig, listen: '' } })
  if (!loaded.ok) throw new CommandError(loaded.problems.map(formatProblem).join('\n'))
  const { config } = loaded
  const gateway = await startGateway({
    config,
    env: { PLAT_ADMIN_TOKEN: adminToken },
    build: buildInfo('gateway'),
    ...{ log, clock, ids, stdioSocket, stdioReady },
    resources: { dir: resourcesDir, store },
    resourceProblems: options.problemsWith({ config }),
    consoleAssets: async () => (await import('@plat/console')).consoleAssets(),
  })
  const listen = options.resourcesListen
  const { resourceRoutes: routes } = gateway
  try {
    const kubectl = await openKubectl({ home, listen, routes, token: adminToken, log, clock, ids })
    return {
      config,
      gateway,
      async close() {
        await kubectl.close()
        await gateway.drain()
      },
    }
  } catch (error) {
    await gateway.drain()
    throw error
  }
}
