import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { formatProblem } from '@plat/config'
import { buildInfo, systemClock, systemIds } from '@plat/core'
import { type Log, silentLog } from '@plat/process'
import { type TestIssuer, testIssuer } from '@plat/testkit/identity'
import { tempFolder } from '@plat/testkit/local'
import { policiesFile } from '@plat/testkit/policies'
import type { GatewayOptions } from '../compose.ts'
import { loadGatewayConfig } from '../config.ts'
import { type Gateway, startGateway } from '../gateway.ts'

/** The admin token of these gateways. */
export const TOKEN = 'a-token-of-the-test'

/** Calls that need an approval wait until the test decides, however slow the machine is. */
const UNHURRIED_SECONDS = 600

/** Runs functions at the end of a test or of a file of tests. */
export interface Ends {
  after(end: () => unknown): void
}

export interface GatewayFixture {
  readonly gateway: Gateway
  readonly issuer: TestIssuer
}

/** A gateway in this process with the least configuration and `own` over it. `drained`: the test ends it itself.
 * `identity`: keys beside the public key of the issuer. */
export async function started(
  t: Ends,
  own: object,
  drained = false,
  {
    log = silentLog,
    env = {},
    identity = {},
    overload,
    consoleAssets,
  }: Pick<GatewayOptions, 'overload' | 'consoleAssets'> &
    Partial<Pick<GatewayOptions, 'log' | 'env'>> & { readonly identity?: object } = {},
): Promise<GatewayFixture> {
  const dir = tempFolder()
  const issuer = testIssuer()
  await writeFile(join(dir, 'pub.pem'), issuer.signer.publicKey.key.export({ type: 'spki', format: 'pem' }))
  const least = {
    listen: '127.0.0.1:0',
    identity: { publicKeyFiles: [join(dir, 'pub.pem')], ...identity },
    policyFile: join(dir, 'policies.json'),
    upstreams: { notes: 'http://127.0.0.1:9/mcp' },
    auditPath: join(dir, 'audit.jsonl'),
    approvalAnswerAfterSeconds: UNHURRIED_SECONDS,
  }
  await writeFile(join(dir, 'gateway.json'), JSON.stringify({ ...least, ...own }))
  await writeFile(join(dir, 'policies.json'), policiesFile())
  const loaded = loadGatewayConfig({ env: {}, flags: { config: join(dir, 'gateway.json'), listen: '' } })
  if (!loaded.ok) assert.fail(loaded.problems.map(formatProblem).join('\n'))
  const shared = {
    clock: systemClock,
    ids: systemIds(systemClock),
    log,
    build: buildInfo('gateway'),
    ...(overload && { overload }),
    ...(consoleAssets && { consoleAssets }),
  }
  const gateway = await startGateway({ ...shared, config: loaded.config, env: { ...env, PLAT_ADMIN_TOKEN: TOKEN } })
  if (!drained) t.after(() => gateway.drain())
  return { gateway, issuer }
}

/** A log whose lines are JSON texts in `lines`. */
export function logTo(lines: string[]): Log {
  const line = (fields: object, message: string) => void lines.push(JSON.stringify({ ...fields, message }))
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log }
  return log
}
