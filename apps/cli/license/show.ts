import { readText } from '@plat/config'
import { type Clock, reasonOf, rfc3339, systemClock } from '@plat/core'
import {
  buildAuthority,
  type LicenseAuthority,
  MAX_LICENSE_BYTES,
  NO_LICENSE,
  readAuthority,
  readLicense,
  type Standing,
  standingOf,
} from '@plat/license'
import { findFolder } from '../shared/gateway.ts'
import { gatewayConfig } from '../shared/gateway-config.ts'
import { CommandError, type Format, type Output, printObject } from '../shared/output.ts'

export interface LicenseShowOptions {
  /** A licence; undefined: that of the running plat. */
  readonly path?: string | undefined
  readonly dir?: string | undefined
  /** Public key (PEM) of the license issuer. Default: the key of this build. */
  readonly key?: string | undefined
  readonly output: Format
  readonly clock?: Clock
}

/** Exit code of a licence that does not count. */
const DOES_NOT_COUNT = 3

/** `plat license show`. @returns 0 none, valid or in its grace, 3 invalid or expired */
export async function licenseShow(options: LicenseShowOptions, output: Output): Promise<number> {
  const { path, dir, key, output: format, clock = systemClock } = options
  const file = path ?? gatewayConfig((await findFolder(dir)).home.gatewayConfig).licenseFile
  const standing = file === '' ? NO_LICENSE : await standingIn(file, await authorityOf(key), clock)
  printObject(output, format, { file: file || 'none', ...rowsOf(standing) })
  return standing.state === 'invalid' || standing.state === 'expired' ? DOES_NOT_COUNT : 0
}

async function authorityOf(key: string | undefined): Promise<LicenseAuthority> {
  if (key === undefined) return buildAuthority()
  const text = await textOf(key)
  try {
    return readAuthority(text, key)
  } catch (error) {
    throw new CommandError(reasonOf(error), 2)
  }
}

async function standingIn(file: string, authority: LicenseAuthority, clock: Clock): Promise<Standing> {
  return standingOf(readLicense(await textOf(file), authority), clock.now())
}

async function textOf(file: string): Promise<string> {
  const text = await readText(file, MAX_LICENSE_BYTES)
  if (text !== null) return text
  throw new CommandError(`${file}: cannot be read, or has more than ${MAX_LICENSE_BYTES} bytes`, DOES_NOT_COUNT)
}

function rowsOf({ state, edition, reason, license, daysLeft, nodeLimit }: Standing): Record<string, string | number> {
  return {
    edition,
    state,
    ...(reason !== null && { reason }),
    ...(license !== null && {
      id: license.id,
      holder: license.holder,
      from: rfc3339(license.notBefore * 1000),
      until: rfc3339(license.expiresAt * 1000),
      graceDays: license.graceDays,
    }),
    ...(daysLeft !== null && { daysLeft }),
    nodes: nodeLimit === 0 ? 'unlimited' : nodeLimit,
  }
}
