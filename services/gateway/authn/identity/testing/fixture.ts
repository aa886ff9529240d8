import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import { TestClock } from '@plat/core'
import type { Log } from '@plat/process'
import { TEST_AUDIENCE, TEST_ISSUER, type TestIssuer, testIssuer } from '@plat/testkit/identity'
import type { Denial, Identity, WireRequest } from '../../../call/index.ts'
import { recordedMetrics } from '../../../testing/metrics.ts'
import { type Authenticator, type AuthenticatorConfig, createAuthenticator } from '../index.ts'

/** An authenticator with a test clock, a test broker and documents by URL. */
export interface TestAuthenticator {
  readonly clock: TestClock
  readonly issuer: TestIssuer
  readonly auth: Authenticator
  /** Authenticates a request with these headers; default path `/mcp/notes`. */
  answer(headers: IncomingHttpHeaders, path?: string): Promise<Identity | Denial>
  /** Reasons of refusals, in order. */
  readonly failed: string[]
  readonly proven: string[]
  readonly lines: { fields: object; message: string }[]
  /** Fetched URLs. */
  readonly fetched: { url: string; caPEM: string | undefined }[]
  /** Value of the trusted keys gauge. */
  trusted(): number
}

export interface TestAuthenticatorSetup {
  readonly config?: Partial<AuthenticatorConfig>
  readonly dpop?: Partial<Parameters<typeof createAuthenticator>[0]['dpop']>
  /** Documents by URL, in addition to the broker's keys. Other URLs respond with 404. */
  readonly documents?: Readonly<Record<string, () => object>>
}

export const BROKER_KEYS = 'http://broker/.well-known/jwks.json'

export function wire(headers: IncomingHttpHeaders, path = '/mcp/notes'): WireRequest {
  return { method: 'POST', path, query: '', headers, body: Readable.from([]), remote: '127.0.0.1:5' }
}

export async function startAuthenticator(
  t: TestContext,
  { config = {}, dpop = {}, documents = {} }: TestAuthenticatorSetup = {},
): Promise<TestAuthenticator> {
  const clock = new TestClock()
  const issuer = testIssuer({ clock })
  const { metrics, of } = recordedMetrics()
  const lines: TestAuthenticator['lines'] = []
  const fetched: TestAuthenticator['fetched'] = []
  const line = (fields: object, message: string) => void lines.push({ fields, message })
  const log: Log = { debug: () => {}, info: () => {}, warn: line, error: line, child: () => log }
  const all: typeof documents = { [BROKER_KEYS]: () => issuer.jwks(), ...documents }
  const auth = await createAuthenticator({
    config: { ...brokerOnly, ...config },
    dpop: { require: false, maxAgeSeconds: 60, publicURL: '', ...dpop },
    dialer: {
      async fetchBytes(url, _, { caPEM }) {
        fetched.push({ url, caPEM })
        const document = all[url]
        return { status: document === undefined ? 404 : 200, bytes: Buffer.from(JSON.stringify(document?.() ?? {})) }
      },
    },
    clock,
    log,
    metrics,
  })
  t.after(() => auth.close())
  const answer = async (headers: IncomingHttpHeaders, path?: string) => auth.authenticate(wire(headers, path))
  return {
    ...{ clock, issuer, auth, answer, lines, fetched },
    failed: of('plat_gateway_auth_failures_total'),
    proven: of('plat_gateway_dpop_requests_total'),
    trusted: () => Number(of('plat_gateway_trusted_keys').at(-1)),
  }
}

const brokerOnly: AuthenticatorConfig = {
  publicKeyFiles: [],
  jwksURL: BROKER_KEYS,
  jwksRefreshSeconds: 300,
  issuer: TEST_ISSUER,
  audience: TEST_AUDIENCE,
  leewaySeconds: 30,
  acceptMLDSA: false,
  mldsaPublicKeyFiles: [],
  resourceBaseURL: '',
  trustedIssuers: [],
}
