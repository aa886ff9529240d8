import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, connect as dial, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { wholeLines } from '@plat/testkit/ledger'
import { listening, tempFolder } from '@plat/testkit/local'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { type GatewayFixture, started, TOKEN } from './started.ts'

/** Options of the fixture. */
export interface TunnelSetup {
  /** Keys of gateway.json, laid over those by which `localhost` can be reached. */
  readonly config?: object
  /** Keys of `web`, likewise. */
  readonly web?: object
  /** The test ends the gateway itself. */
  readonly drained?: boolean
  /** Handles connections at the host; absent: everything is echoed. */
  readonly host?: (socket: Socket) => void
}

/** A caller's side of a tunnel, or of its refusal. */
export interface TunnelResponse {
  readonly status: number
  /** The head as it came, in lower case. */
  readonly head: string
  /** Read up to the end of the head. */
  readonly socket: Socket
  /** A refusal, after its connection was closed. */
  readonly body: Readonly<Record<string, unknown>>
}

export interface TunnelFixture extends GatewayFixture {
  /** Of the host at the other end. */
  readonly port: number
  /** Connections that the host took. */
  readonly accepted: readonly Socket[]
  token(claims?: object): string
  /** Requests a tunnel to `localhost`. If `authorization` is null, none is sent; `early` is sent together with the head. */
  ask(more?: {
    readonly target?: string
    readonly authorization?: string | null
    readonly lines?: readonly string[]
    readonly early?: string
  }): Promise<TunnelResponse>
  rules(rules: readonly object[]): Promise<void>
  records(): readonly Record<string, unknown>[]
  /** The one outcome of the last tunnel, once it is written. */
  outcome(): Promise<Record<string, unknown>>
  metric(series: string): Promise<string | undefined>
  /** Resolves when the host has lost every connection. */
  idle(): Promise<void>
}

/** A gateway with its egress proxy on, and a host that its callers may reach. */
export async function setUpTunnels(t: TestContext, setup: TunnelSetup = {}): Promise<TunnelFixture> {
  const { host = (socket) => void socket.pipe(socket) } = setup
  const accepted: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket)
    socket.on('error', () => {})
    host(socket)
  })
  t.after(() => stopped(server, accepted))
  const port = await listening(server)
  const dir = tempFolder()
  const policyFile = join(dir, 'policies.json')
  let generation = 0
  const rules = (list: readonly object[]) =>
    writeFile(policyFile, policiesFile([testPolicy({ rules: list })], ++generation))
  await rules([{ name: 'all', action: 'allow' }])
  const auditPath = join(dir, 'audit.jsonl')
  const own = {
    policyFile,
    policyReloadSeconds: 1,
    auditPath,
    egress: { enabled: true },
    web: {
      allowedDomains: ['localhost'],
      allowedPorts: [port],
      allowedCIDRs: ['127.0.0.0/8', '::1/128'],
      ...setup.web,
    },
    ...setup.config,
  }
  const fixture = await started(t, own, setup.drained)
  const token = (claims: object = {}) => fixture.issuer.token({ scope: 'tools:plat-egress', ...claims })
  const records = () => wholeLines(auditPath).map((line) => JSON.parse(line).rec)
  return {
    ...fixture,
    port,
    accepted,
    token,
    rules,
    records,
    ask({ target = `localhost:${port}`, authorization = `Bearer ${token()}`, lines = [], early = '' } = {}) {
      const proxy = authorization === null ? [] : [`Proxy-Authorization: ${authorization}`]
      return ask(t, fixture.gateway.port, [`CONNECT ${target} HTTP/1.1`, `Host: ${target}`, ...proxy, ...lines], early)
    },
    async outcome() {
      const found = () => records().filter(({ kind, op }) => kind === 'outcome' && op === 'tunnel')
      await until(() => found().length > 0, 'the outcome')
      return found().at(-1) ?? assert.fail()
    },
    async metric(series) {
      const headers = { authorization: `Bearer ${TOKEN}` }
      const text = await (await fetch(`${fixture.gateway.adminUrl}/metrics`, { headers })).text()
      return text.split('\n').find((line) => line.startsWith(`${series} `))
    },
    idle: () => until(() => accepted.every(({ closed }) => closed), 'the end of every connection'),
  }
}

async function stopped(server: Server, sockets: readonly Socket[]): Promise<void> {
  for (const socket of sockets) socket.destroy()
  server.close()
  await once(server, 'close')
}

async function ask(t: TestContext, port: number, lines: readonly string[], early: string): Promise<TunnelResponse> {
  const socket = dial({ port, host: '127.0.0.1', allowHalfOpen: true })
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.write(`${lines.join('\r\n')}\r\n\r\n${early}`, 'latin1')
  const head = await headOf(socket)
  const status = Number(head.slice(9, 12))
  const body = status === 200 ? {} : JSON.parse(await readAll(socket))
  if (status !== 200) socket.destroy()
  return { head: head.toLowerCase(), status, socket, body }
}

/** Reads to the empty line; what came behind it is put back, and the socket paused. */
function headOf(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    const read = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk])
      const end = bytes.indexOf('\r\n\r\n')
      if (end === -1) return
      socket.off('data', read).off('close', lost).pause()
      const rest = bytes.subarray(end + 4)
      if (rest.length > 0) socket.unshift(rest)
      resolve(bytes.toString('latin1', 0, end))
    }
    const lost = () => reject(new Error(`no head: ${bytes.toString('latin1')}`))
    socket.on('data', read).on('close', lost)
  })
}

/** Everything that comes until the other side ends; this side stays open. */
export function readAll(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const done = () => resolve(text)
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.once('end', done).once('close', done).resume()
  })
}
