import { isObject } from '@plat/core'
import { isApprovalView } from '@plat/gateway/approvals'
import { isRevocationView } from '@plat/gateway/revocations'
import { FILE_KINDS } from '@plat/operator'
import { API_VERSION, kinds } from '@plat/resources'
import { callerLine, isWhoami } from '../login/whoami.ts'
import { RUN_ENDED } from '../revoke/revoke.ts'
import { admin, adminList } from '../shared/admin-api.ts'
import { EXIT } from '../shared/exit-codes.ts'
import { findGateway, type GatewayOptions } from '../shared/gateway.ts'
import type { HomeEnv, PlatFolder } from '../shared/home.ts'
import { CommandError, type Output, plain, type WideFormat } from '../shared/output.ts'
import { counted, printData, printObject } from '../shared/print.ts'
import { usableSocketPath } from '../stdio/launch/socket.ts'
import { readStdioStatus } from '../stdio/launch/status.ts'
import type { ServerStatus } from '../stdio/protocol.ts'
import { findingsOf } from '../validate/validate.ts'

/** How long a service may take to say that it is ready, in milliseconds. */
const READY_MS = 5000
/** Problems of a table; `wide` and the formats for programs have all. */
const SHOWN_MAX = 5

/** Printed by `plat status -o json`. */
interface Status {
  /** Null: only the addresses of the gateway are known. */
  readonly dir: string | null
  readonly gateway: Service
  readonly admin: Service
  /** Name of the caller at the admin API: a person, or the static token. */
  readonly caller: string
  /** Null: its address is not known. */
  readonly identity: Service | null
  /** Number of objects by plural, and of those in force. */
  readonly resources: Readonly<Record<string, { readonly declared: number; readonly inForce: number }>>
  readonly refused: readonly string[]
  readonly warnings: readonly string[]
  readonly ledger: {
    readonly seq: number
    readonly hash: string
    readonly checkpointUpTo: number | null
    /** Sealed segments that the gateway found to be damaged. */
    readonly damagedSegments: number
  }
  readonly pendingApprovals: number
  readonly revocations: number
  /** How many of them ended the session of a `plat run`. */
  readonly revocationsOfEndedRuns: number
  /** Servers that plat up runs; absent if there are none. */
  readonly stdioServers?: readonly ServerStatus[]
}

interface Service {
  readonly url: string
  readonly ready: boolean
}

/**
 * `plat status`: what runs in a directory.
 * @returns 0 everything is in force, 3 some resource is refused
 * @throws CommandError if nothing runs
 */
export async function status({ dir, output: format }: GatewayOptions<WideFormat>, output: Output): Promise<number> {
  const { home, env } = await findGateway(dir)
  const ledger = headOf(await admin(env, 'GET', '/v1/audit/head'))
  const { errors: refused, warnings } = home === null ? NO_FOLDER : await findingsOf(home)
  const { PLAT_GATEWAY_URL, PLAT_ADMIN_URL, PLAT_IDENTITY_URL } = env
  const [gateway, api, identity] = await Promise.all([
    serviceAt(PLAT_GATEWAY_URL),
    serviceAt(PLAT_ADMIN_URL),
    PLAT_IDENTITY_URL === '' ? null : serviceAt(PLAT_IDENTITY_URL),
  ])
  const who = await admin(env, 'GET', '/v1/whoami')
  const caller = isWhoami(who) ? who.by : ''
  const revocations = await adminList(env, '/v1/revocations', isRevocationView)
  const found: Status = {
    dir: home?.dir ?? null,
    gateway,
    admin: api,
    caller,
    identity,
    resources: await countResources(env),
    refused,
    warnings,
    ledger,
    pendingApprovals: (await adminList(env, '/v1/approvals?state=pending', isApprovalView)).length,
    revocations: revocations.length,
    revocationsOfEndedRuns: revocations.filter(({ reason }) => reason === RUN_ENDED).length,
    ...(home !== null && (await stdioServersOf(home))),
  }
  if (format === 'name') output.out(found.gateway.url)
  else if (format === 'json' || format === 'yaml') printData(output, format, found)
  else printStatus(output, { ...found, caller: await callerLine(env, caller) }, format === 'wide')
  return refused.length > 0 || ledger.damagedSegments > 0 ? EXIT.found : 0
}

async function stdioServersOf({ stdioSocket }: PlatFolder): Promise<Pick<Status, 'stdioServers'>> {
  const status = await readStdioStatus(usableSocketPath(stdioSocket))
  return status === null || status.servers.length === 0 ? {} : { stdioServers: status.servers }
}

/** `2 processes, 1 session, failed 3 times, last: exit code 1` */
function stdioLine({ pids, sessions, failures, lastFailure, problem }: ServerStatus): string {
  const parts = [
    problem === null ? null : `cannot be started: ${problem}`,
    `${pids.length} ${pids.length === 1 ? 'process' : 'processes'}`,
    sessions === 0 ? null : counted(sessions, 'session'),
    failures === 0 ? null : `failed ${counted(failures, 'time')}, last: ${lastFailure}`,
  ]
  return plain(parts.filter((part) => part !== null).join(', '))
}

const NO_FOLDER = { errors: [], warnings: [] } as const

async function serviceAt(url: string): Promise<Service> {
  const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(READY_MS) }).catch(() => null)
  await response?.body?.cancel()
  return { url, ready: response?.ok === true }
}

function headOf(body: unknown): Status['ledger'] {
  if (!isObject(body) || typeof body.seq !== 'number' || typeof body.hash !== 'string')
    throw new CommandError('the response of the gateway is not the head of a ledger')
  const upTo = isObject(body.checkpoint) ? body.checkpoint.upTo : null
  const damagedSegments = Array.isArray(body.damagedSegments) ? body.damagedSegments.length : 0
  return { seq: body.seq, hash: body.hash, checkpointUpTo: typeof upTo === 'number' ? upTo : null, damagedSegments }
}

async function countResources(env: HomeEnv): Promise<Status['resources']> {
  const counts = FILE_KINDS.map(async (kind) => {
    const { plural } = kinds[kind]
    const body = await admin(env, 'GET', `/apis/${API_VERSION}/${plural}`)
    const items: readonly unknown[] = isObject(body) && Array.isArray(body.items) ? body.items : []
    return [plural, { declared: items.length, inForce: items.filter((item) => !isRefused(item)).length }] as const
  })
  return Object.fromEntries((await Promise.all(counts)).filter(([, { declared }]) => declared > 0))
}

/** The condition Ready is false where a resource is refused. */
/** Revocations of ended runs are expected, and are named as such. */
function revocationsLine({ revocations, revocationsOfEndedRuns: ended }: Status): string {
  const others = revocations - ended
  return `${others}${ended === 0 ? '' : `, and ${ended} of ended runs`}${others === 0 ? '' : '; see plat revocations list'}`
}

function isRefused(item: unknown): boolean {
  const conditions = isObject(item) && isObject(item.status) ? item.status.conditions : null
  const all: readonly unknown[] = Array.isArray(conditions) ? conditions : []
  return all.some((one) => isObject(one) && one.type === 'Ready' && one.status === 'False')
}

function printStatus(output: Output, found: Status, wide: boolean): void {
  const { gateway, admin: api, identity, resources, ledger } = found
  const service = ({ url, ready }: Service) => `${url} ${ready ? 'ready' : 'not ready'}`
  const counts = Object.entries(resources).map(([plural, { declared, inForce }]) =>
    inForce === declared ? `${plural} ${declared}` : `${plural} ${inForce} of ${declared}`,
  )
  printObject(output, 'table', {
    ...(found.dir !== null && { directory: plain(found.dir) }),
    gateway: service(gateway),
    ...(api.url !== gateway.url && { admin: service(api) }),
    ...(identity !== null && { identity: service(identity) }),
    caller: found.caller,
    'in force': counts.join(', ') || 'no resources',
    ledger: `record ${ledger.seq}, ${wide ? ledger.hash : ledger.hash.slice(0, 16)}`,
    ...(ledger.damagedSegments > 0 && {
      segments: `${ledger.damagedSegments} damaged; see plat audit verify, and restore them from a copy`,
    }),
    checkpoint: ledger.checkpointUpTo === null ? 'none yet' : `up to record ${ledger.checkpointUpTo}`,
    approvals: `${found.pendingApprovals} pending${found.pendingApprovals === 0 ? '' : '; decide with plat approvals watch'}`,
    revocations: revocationsLine(found),
    ...Object.fromEntries((found.stdioServers ?? []).map((one) => [`server ${one.key}`, stdioLine(one)])),
  })
  const lines = [
    ...found.refused.map((line) => `refused: ${line}`),
    ...found.warnings.map((line) => `warning: ${line}`),
  ].map(plain)
  const displayed = wide ? lines : lines.slice(0, SHOWN_MAX)
  for (const line of displayed) output.out(line)
  if (displayed.length < lines.length)
    output.out(`${lines.length - displayed.length} more: plat validate ${found.dir ?? ''}`)
}
