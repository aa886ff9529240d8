import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isListenAddress } from '@plat/config'
import { type Clock, type Ids, reasonOf, systemClock, systemIds } from '@plat/core'
import type { GatewayConfig } from '@plat/gateway'
import { startIdentity } from '@plat/identity'
import { generateKeyFiles } from '@plat/keys'
import { type Render, startRender, startStatus } from '@plat/operator'
import type { Log } from '@plat/process'
import { createFileStore, type ResourceStore } from '@plat/resources'
import { writeSchemas } from '../schema/schema.ts'
import { type HomeEnv, homeOf, lockHome, makeHome, type PlatFolder, readHomeEnv, writeHomeEnv } from '../shared/home.ts'
import { CommandError, plain } from '../shared/output.ts'
import { type StdioOptions, StdioSupervisor } from '../stdio/launch/supervisor.ts'
import { createChangeFinder } from './changes.ts'
import { createProblemFinder, type Problems } from './problems.ts'
import { readKeys, ServedGateway } from './served-gateway.ts'
import { openLogs } from './terminal-log.ts'

export interface UpOptions {
  readonly dir: string
  readonly listen: string
  readonly identityListen: string
  /** TLS listener for `kubectl`. Default: any free loopback port. */
  readonly resourcesListen?: string
  /** `file`: `.plat/logs/<service>.jsonl`; `json`: stdout. */
  readonly log: 'file' | 'json'
}

/** A running plat: identity broker, gateway and the render loop in one process, on files. */
export interface Up {
  readonly home: PlatFolder
  readonly env: HomeEnv
  /** Null: the console is off. */
  readonly consoleUrl: string | null
  readonly store: ResourceStore
  /** Returns what is refused or probably not meant, as of now. */
  problems(): Promise<Problems>
  /** Returns what has changed since the last call, or since the start: one line each. */
  changes(): Promise<readonly string[]>
  stop(): Promise<void>
}

const TOKEN_BYTES = 32
/** Time after the start at which the schemas for editors are written, in milliseconds. */
const SCHEMAS_AFTER_MS = 500

/** Starts everything in order: state, broker, rendered files, gateway. If a step fails, the earlier ones are stopped again. */
export async function startUp(options: UpOptions, announce: (line: string) => void = () => {}): Promise<Up> {
  checkAddresses(options)
  const home = homeOf(options.dir)
  if (!existsSync(resourcesOf(home))) {
    throw new CommandError(
      `${home.dir} has no resources/ folder; name a directory that has one, or write one with plat init`,
    )
  }
  await makeHome(home)
  const lock = lockHome(home)
  const undo: (() => Promise<void> | void)[] = [() => lock.release()]
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step()
  }
  try {
    return await startParts({ home, options, announce, undo, stop })
  } catch (error) {
    await stop()
    throw portTaken(error, options)
  }
}

async function startParts(context: {
  readonly home: PlatFolder
  readonly options: UpOptions
  readonly announce: (line: string) => void
  readonly undo: (() => Promise<void> | void)[]
  readonly stop: () => Promise<void>
}): Promise<Up> {
  const { home, options, announce, undo, stop } = context
  const clock = systemClock
  const ids = systemIds(clock)
  const { logTo, terminal } = openLogs({ folder: home.logs, to: options.log, print: announce, clock })
  const tokens = await tokensOf(home, ids)
  for (const folder of [home.keys, home.auditKeys, home.cardKeys]) {
    if (!existsSync(join(folder, 'key.pem'))) await generateKeyFiles(folder)
  }

  const identity = await startBroker(home, {
    listen: options.identityListen,
    env: { PLAT_BROKER_TOKEN: tokens.PLAT_BROKER_TOKEN },
    ...{ log: logTo('identity'), clock, ids },
  })
  undo.push(() => identity.close())

  const operatorLog = logTo('operator')
  const addresses = { listen: options.listen, identityURL: identity.url }
  const given = await readKeys(home, addresses)
  const { store, render } = await startRendering(home, { currency: given.currency, clock, log: operatorLog })
  undo.push(() => render.stop())

  const stdio = stdioServers({ home, options, render, clock, ids, log: operatorLog, announce })
  undo.push(() => stdio.stop())
  await stdio.start()
  const using = { clock, ids, log: logTo('gateway'), ...stdio.forGateway, adminToken: tokens.PLAT_ADMIN_TOKEN }
  const resources = { resourcesDir: resourcesOf(home), resourcesListen: options.resourcesListen ?? '127.0.0.1:0' }
  const problemsWith = (served: { readonly config: GatewayConfig }) =>
    createProblemFinder({ home, store, render, served })
  const served = await ServedGateway.start({ home, store, problemsWith, ...addresses, ...resources, ...using }, given)
  undo.push(() => served.stop())

  const status = startStatus({
    ...{ store, refused: render.refused, clock, log: operatorLog },
    pins: () => served.gateway.pins(),
    endpoints: () => served.config.endpointJurisdictions,
  })
  undo.push(() => status.stop())
  await status.check()

  const env = {
    ...tokens,
    PLAT_GATEWAY_URL: served.gateway.url,
    PLAT_ADMIN_URL: served.gateway.adminUrl,
    PLAT_IDENTITY_URL: identity.url,
  }
  await writeHomeEnv(home, env)
  undo.push(writeSchemasSoon(home, { clock, log: operatorLog }))
  const changes = await createChangeFinder({ home, render, served })
  const { consoleUrl } = served.gateway
  terminal.begin()
  return { home, env, consoleUrl, store, problems: problemsWith(served), changes, stop }
}

function startBroker(
  home: PlatFolder,
  options: Omit<Parameters<typeof startIdentity>[0], 'signingKey' | 'exchangeConfig'>,
): ReturnType<typeof startIdentity> {
  const exchange = join(home.dir, 'exchange.json')
  const configured = existsSync(exchange) ? { exchangeConfig: exchange } : {}
  return startIdentity({ ...options, signingKey: join(home.keys, 'key.pem'), ...configured })
}

/** Writes the schemas for editors when the start is over: no call needs them. Returns a function that cancels it, or waits for it. */
function writeSchemasSoon({ schemas }: PlatFolder, { clock, log }: { readonly clock: Clock; readonly log: Log }) {
  let writing: Promise<void> | null = null
  const cancel = clock.after(SCHEMAS_AFTER_MS, () => {
    writing = writeSchemas(schemas).catch((error: unknown) =>
      log.warn({ reason: reasonOf(error) }, 'no schemas for editors'),
    )
  })
  return async () => {
    cancel()
    await writing
  }
}

/** Runs the servers that speak on stdin and stdout. */
function stdioServers({
  options,
  render,
  ...using
}: Pick<StdioOptions, 'home' | 'clock' | 'ids' | 'log' | 'announce'> & {
  readonly options: UpOptions
  readonly render: Pick<Render, 'declared'>
}): StdioSupervisor {
  return new StdioSupervisor({
    ...using,
    servers: () => render.declared().servers,
    logFile: options.log === 'file' ? join(using.home.logs, 'stdio.jsonl') : null,
    env: process.env,
  })
}

function resourcesOf(home: PlatFolder): string {
  return join(home.dir, 'resources')
}

async function startRendering(
  home: PlatFolder,
  using: { readonly currency: string; readonly clock: Clock; readonly log: Log },
) {
  const { clock, log } = using
  const store = createFileStore({ dir: resourcesOf(home), schemasDir: home.schemas, clock, log })
  const render = await startRender({
    store,
    outDir: home.rendered,
    credentialsDir: home.credentials,
    secretsDir: home.secrets,
    configMapsDir: home.configMaps,
    documentsDir: home.dir,
    ...using,
  })
  return { store, render }
}

/** Tokens survive a restart, so that terminals and agents can continue to use them. */
async function tokensOf(home: PlatFolder, ids: Ids): Promise<Pick<HomeEnv, 'PLAT_BROKER_TOKEN' | 'PLAT_ADMIN_TOKEN'>> {
  const known = await readHomeEnv(home)
  const fresh = () => Buffer.from(ids.random(TOKEN_BYTES)).toString('base64url')
  return {
    PLAT_BROKER_TOKEN: known?.PLAT_BROKER_TOKEN ?? fresh(),
    PLAT_ADMIN_TOKEN: known?.PLAT_ADMIN_TOKEN ?? fresh(),
  }
}

/** @throws CommandError with exit code 2 that names the flag and the fix */
function checkAddresses({ listen, identityListen, resourcesListen }: UpOptions): void {
  const flags = { '-listen': listen, '-identity-listen': identityListen, '-resources-listen': resourcesListen }
  for (const [flag, address] of Object.entries(flags)) {
    if (address === undefined || isListenAddress(address)) continue
    const fix = /^\d{1,5}$/.test(address)
      ? `write ${flag} 127.0.0.1:${address} for this machine, or ${flag} :${address} for all of its addresses`
      : 'write it as 127.0.0.1:8080 or :8080'
    throw new CommandError(`${flag} ${JSON.stringify(plain(address))} is not an address; ${fix}`, 2)
  }
}

/** Reports a port in use in one line with the flag to change. */
function portTaken(error: unknown, options: UpOptions): unknown {
  const cause = error instanceof Error ? error.cause : null
  if (!(cause instanceof Error) || !('code' in cause) || cause.code !== 'EADDRINUSE') return error
  const port = 'port' in cause ? String(cause.port) : ''
  const flags = { '-identity-listen': options.identityListen, '-resources-listen': options.resourcesListen }
  const [flag = '-listen'] = Object.entries(flags).find(([, address]) => address?.endsWith(`:${port}`)) ?? []
  return new CommandError(`port ${port} is in use; choose another address with ${flag} 127.0.0.1:<port>`)
}
