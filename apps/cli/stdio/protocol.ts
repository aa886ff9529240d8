/** Messages between the bridge and the process that started it: lines of JSON on the bridge's stdin and stdout, and its status over HTTP. */
import { readJson } from '@plat/core'
import { type Static, Type } from 'typebox'
import { Value } from 'typebox/value'

const closed = { additionalProperties: false } as const

const serverSpecSchema = Type.Object(
  {
    /** `<namespace>/<name>` of the MCPServer. */
    key: Type.String({ minLength: 1 }),
    /** Program and arguments, with the sandbox around it. */
    argv: Type.Array(Type.String(), { minItems: 1 }),
    /** The whole environment of the program. */
    env: Type.Record(Type.String(), Type.String()),
    /** Names in `env` whose values come from Secrets; they are removed from what the program writes to stderr. */
    secrets: Type.Array(Type.String()),
    cwd: Type.String({ minLength: 1 }),
    /** One process for each session; otherwise all sessions share one. */
    perSession: Type.Boolean(),
    /** How long an unused process is kept, in milliseconds. */
    idleMs: Type.Integer({ minimum: 1 }),
    /** Why the server cannot be started; null: it can. */
    problem: Type.Union([Type.String(), Type.Null()]),
  },
  closed,
)

const configSchema = Type.Object(
  {
    /** Path of the Unix socket to listen on. Only the first message counts. */
    socket: Type.String({ minLength: 1 }),
    /** Log file; null: none. Only the first message counts. */
    log: Type.Union([Type.String(), Type.Null()]),
    servers: Type.Array(serverSpecSchema, { maxItems: 1024 }),
  },
  closed,
)

const eventSchema = Type.Union([
  Type.Object({ event: Type.Literal('ready') }, closed),
  Type.Object({ event: Type.Literal('started'), server: Type.String(), pid: Type.Integer() }, closed),
  Type.Object(
    {
      event: Type.Literal('ended'),
      server: Type.String(),
      pid: Type.Integer(),
      /** How it ended, such as `exit code 1`. */
      how: Type.String(),
      /** The bridge stopped it. */
      isExpected: Type.Boolean(),
      /** Time until the next start, in milliseconds. */
      restartsAfterMs: Type.Integer({ minimum: 0 }),
    },
    closed,
  ),
  Type.Object({ event: Type.Literal('failed'), server: Type.String(), reason: Type.String() }, closed),
])

const serverStatusSchema = Type.Object(
  {
    key: Type.String(),
    perSession: Type.Boolean(),
    /** Running processes. */
    pids: Type.Array(Type.Integer()),
    sessions: Type.Integer(),
    /** Calls that wait for a response. */
    calls: Type.Integer(),
    /** Processes that ended unexpectedly since the bridge started. */
    failures: Type.Integer(),
    /** How the last of them ended; null: none has. */
    lastFailure: Type.Union([Type.String(), Type.Null()]),
    problem: Type.Union([Type.String(), Type.Null()]),
  },
  closed,
)

const statusSchema = Type.Object({ servers: Type.Array(serverStatusSchema) }, closed)

/** A server that the bridge runs. */
export type ServerSpec = Static<typeof serverSpecSchema>
/** A line on the bridge's stdin: what it runs from now on. */
export type BridgeConfig = Static<typeof configSchema>
/** A line on the bridge's stdout. */
export type BridgeEvent = Static<typeof eventSchema>
export type ServerStatus = Static<typeof serverStatusSchema>
/** Body of a GET of `STATUS_PATH`. */
export type BridgeStatus = Static<typeof statusSchema>

export const STATUS_PATH = '/status'
/** On a port: answered to everyone, for the probes of a kubelet. */
export const HEALTH_PATH = '/healthz'

/** Reads a configuration. Returns null for anything else. */
export function readBridgeConfig(line: Uint8Array | string): BridgeConfig | null {
  const value = readJson(line)
  return Value.Check(configSchema, value) ? value : null
}

/** Reads an event. Returns null for anything else. */
export function readBridgeEvent(line: Uint8Array | string): BridgeEvent | null {
  const value = readJson(line)
  return Value.Check(eventSchema, value) ? value : null
}

/** Reads a status. Returns null for anything else. */
export function readBridgeStatus(body: Uint8Array | string): BridgeStatus | null {
  const value = readJson(body)
  return Value.Check(statusSchema, value) ? value : null
}
