import { hash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { JsonObject } from '@plat/core'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { policiesFile, testPolicy } from '@plat/testkit/policies'
import { until } from '@plat/testkit/until'
import { type Approver, approverAt } from '../../../testing/approving.ts'
import { started } from '../../../testing/started.ts'

export interface InfraResult {
  readonly status: number
  readonly headers: Headers
  readonly body: JsonObject
}

export interface InfraFixture {
  readonly url: string
  readonly auditPath: string
  readonly approver: Approver
  drain(): Promise<unknown>
  /** Posts a body to `/v1/infra/<path>`, by default as a session of `default/assistant`. */
  post(path: string, body: object | string, token?: string): Promise<InfraResult>
  /** Issues a token for plans. `change` is merged over its claims. */
  token(change?: JsonObject): string
  /** Waits for the first matching record of the ledger. */
  record(fits: (rec: JsonObject) => boolean): Promise<JsonObject>
}

export interface InfraFixtureOptions {
  /** Rules for the policy of the agents. */
  readonly rules?: readonly object[]
  /** Agents of `default` with the policy. Default: `assistant`. */
  readonly agents?: readonly string[]
  /** Keys of gateway.json beside `infra`. */
  readonly config?: object
  /** The test ends the gateway itself. */
  readonly drained?: boolean
}

/** A gateway with this `infra` block. */
export async function setUpInfra(
  t: TestContext,
  infra: object = {},
  {
    rules = [{ name: 'all', action: 'allow' }],
    agents = ['assistant'],
    config = {},
    drained = false,
  }: InfraFixtureOptions = {},
): Promise<InfraFixture> {
  const dir = tempFolder()
  await writeFile(join(dir, 'policies.json'), policiesFile([testPolicy({ rules, agents })]))
  const own = {
    auditPath: join(dir, 'audit.jsonl'),
    policyFile: join(dir, 'policies.json'),
    adminAuth: { devTokenApprovers: true },
    infra: { enabled: true, ...infra },
    ...config,
  }
  const { gateway, issuer } = await started(t, own, drained)
  const token: InfraFixture['token'] = (change = {}) => issuer.token({ scope: 'tools:plat-infra', ...change })
  const records = (): JsonObject[] => wholeLines(own.auditPath).map((line) => JSON.parse(line).rec)
  return {
    url: gateway.url,
    auditPath: own.auditPath,
    approver: approverAt(gateway.url),
    drain: () => gateway.drain(),
    token,
    async post(path, body, bearer = token()) {
      const response = await fetch(`${gateway.url}/v1/infra/${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      })
      return { status: response.status, headers: response.headers, body: Object(await response.json()) }
    },
    async record(fits) {
      await until(() => records().some(fits), 'a record')
      return records().find(fits) ?? {}
    },
  }
}

export function sha256(text: string): string {
  return hash('sha256', text, 'hex')
}
