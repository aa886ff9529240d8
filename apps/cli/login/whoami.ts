import { isObject } from '@plat/core'
import { admin, adminOpen } from '../shared/admin-api.ts'
import { findGateway, type GatewayOptions } from '../shared/gateway.ts'
import type { HomeEnv } from '../shared/home.ts'
import { CommandError, type Output, plain } from '../shared/output.ts'
import { printData, printObject } from '../shared/print.ts'

/** Name of the static token in the ledger. */
const STATIC_TOKEN = 'token:admin'

/** Response of `GET /v1/whoami`. */
export interface Whoami {
  readonly by: string
  readonly roles: readonly string[]
  readonly namespaceRoles: Readonly<Record<string, readonly string[]>>
}

/** Returns whether a response of the admin API says who calls. */
export function isWhoami(body: unknown): body is Whoami {
  return isObject(body) && typeof body.by === 'string' && areTexts(body.roles) && isObject(body.namespaceRoles)
}

function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === 'string')
}

/** Returns a line that describes the caller of commands, with a warning about the static token where people can log in. */
export async function callerLine({ PLAT_ADMIN_URL }: HomeEnv, by: string): Promise<string> {
  if (by !== STATIC_TOKEN) return plain(by)
  const config = await adminOpen(PLAT_ADMIN_URL, '/v1/auth/config')
  return isObject(config) && config.mode !== 'token'
    ? `${by}, the static token for emergencies; log in: plat login`
    : `${by}, the static token, which is not a person`
}

/** `plat whoami`: who the gateway thinks calls, and the roles of the caller. */
export async function whoami(
  { dir, output: format }: GatewayOptions,
  output: Output,
  env = process.env,
): Promise<number> {
  const gateway = await findGateway(dir, { env })
  const who = await admin(gateway.env, 'GET', '/v1/whoami')
  if (!isWhoami(who)) throw new CommandError('the response of the gateway does not say who calls')
  if (format !== 'table') {
    printData(output, format, who)
    return 0
  }
  const within = Object.entries(who.namespaceRoles).map(([namespace, roles]) => `${roles.join(', ')} in ${namespace}`)
  printObject(output, format, {
    gateway: gateway.env.PLAT_ADMIN_URL,
    caller: await callerLine(gateway.env, who.by),
    roles: plain([...who.roles, ...within].join(', ')) || 'none: an administrator grants them in adminAuth.roles',
  })
  return 0
}
