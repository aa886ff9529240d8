import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { isObject, type JsonObject, systemIds, TestClock } from '@plat/core'
import type { Log } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { type Identity, type StartIdentityOptions, startIdentity } from '../index.ts'

export const BROKER_TOKEN = 'broker-secret'
export const base = { namespace: 'default', agent: 'assistant', session: 's1' }

export interface BrokerResponse {
  readonly status: number
  readonly headers: Headers
  readonly body: JsonObject
}

/** Response of `mint`, as text. */
export interface MintedToken {
  readonly token: string
  readonly kid: string
  readonly jti: string
  readonly spiffeId: string
}

/** A broker in this process on a test clock, and the requests that tests send to it. */
export interface TestBroker {
  readonly clock: TestClock
  readonly identity: Identity
  /** Its log lines, one JSON text each. */
  readonly lines: string[]
  /** With the broker token, unless `headers` says otherwise. */
  post(where: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<BrokerResponse>
  mint(more?: object): Promise<MintedToken>
  verify(token: string, audience?: string): Promise<JsonObject>
  bind(token: string, proof: string | null): Promise<BrokerResponse>
  /** As a form, with a DPoP proof when one is given. */
  exchange(parameters: Readonly<Record<string, string>>, proof?: string | null): Promise<BrokerResponse>
}

export async function startTestBroker(
  t: TestContext,
  options: Partial<StartIdentityOptions> = {},
): Promise<TestBroker> {
  const clock = new TestClock()
  const lines: string[] = []
  const line = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log }
  const identity = await startIdentity({
    listen: '127.0.0.1:0',
    env: { PLAT_BROKER_TOKEN: BROKER_TOKEN },
    clock,
    ids: systemIds(clock),
    log,
    ...options,
  })
  t.after(() => identity.close())
  const send = async (where: string, init: RequestInit): Promise<BrokerResponse> => {
    const response = await fetch(identity.url + where, { method: 'POST', ...init })
    return { status: response.status, headers: response.headers, body: await json(response) }
  }
  const post: TestBroker['post'] = (where, body, headers = {}) =>
    send(where, {
      headers: { authorization: `Bearer ${BROKER_TOKEN}`, 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  return {
    clock,
    identity,
    lines,
    post,
    async mint(more = {}) {
      const { body } = await post('/v1/token', { ...base, ...more })
      return { token: text(body.token), kid: text(body.kid), jti: text(body.jti), spiffeId: text(body.spiffeId) }
    },
    verify: async (token, audience) =>
      (await post('/v1/token/verify', { token, ...(audience === undefined ? {} : { audience }) })).body,
    bind: (token, proof) =>
      send('/v1/token/bind', {
        headers: { authorization: `Bearer ${token}`, ...(proof === null ? {} : { dpop: proof }) },
      }),
    exchange: (parameters, proof = null) =>
      send('/v1/exchange', {
        headers: proof === null ? {} : { dpop: proof },
        body: new URLSearchParams({ ...parameters }),
      }),
  }
}

/** Empty for what is not text. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export async function json(response: Response): Promise<JsonObject> {
  const value: unknown = await response.json()
  assert.ok(isObject(value))
  return value
}

/** The claims in a token, unverified. */
export function claimsIn(token: unknown): Record<string, unknown> {
  return JSON.parse(Buffer.from(text(token).split('.')[1] ?? '', 'base64url').toString())
}

/** A file of JSON in a folder that goes away with the test. */
export async function jsonFile(value: unknown): Promise<string> {
  const file = path.join(tempFolder(), 'file.json')
  await fs.writeFile(file, typeof value === 'string' ? value : JSON.stringify(value))
  return file
}
