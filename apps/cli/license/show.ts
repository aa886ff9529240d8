import { readText } from '@plat/config'
import { type Clock, isObject, reasonOf, systemClock } from '@plat/core'
import {
  buildAuthority,
  type LicenseAuthority,
  licenseView,
  MAX_LICENSE_BYTES,
  NO_LICENSE,
  readAuthority,
  readLicense,
  type Standing,
  standingOf,
} from '@plat/license'
import { admin } from '../shared/admin-api.ts'
import { EXIT } from '../shared/exit-codes.ts'
import { findGateway } from '../shared/gateway.ts'
import { gatewayConfig } from '../shared/gateway-config.ts'
import { CommandError, type Format, type Output } from '../shared/output.ts'
import { printObject } from '../shared/print.ts'

export interface LicenseShowOptions {
  /** A licence; undefined: that of the running plat. */
  readonly path?: string | undefined
  readonly dir?: string | undefined
  /** Public key (PEM) of the license issuer. Default: the key of this build. */
  readonly key?: string | undefined
  readonly output: Format
  readonly clock?: Clock
}

/** `plat license show`. @returns 0 none, valid or in its grace, 3 invalid or expired */
export async function licenseShow(options: LicenseShowOptions, output: Output): Promise<number> {
  const displayed = await licenseOf(options)
  printObject(output, options.output, displayed)
  return displayed.state === 'invalid' || displayed.state === 'expired' ? EXIT.found : EXIT.done
}

/** The license of a file, else of the `plat up` of a directory, else of a gateway. */
async function licenseOf({ path, dir, key, clock = systemClock }: LicenseShowOptions): Promise<Shown> {
  if (path !== undefined) return ofFile(path, key, clock)
  const { home, env } = await findGateway(dir)
  if (home !== null) return ofFile(gatewayConfig(home.gatewayConfig).licenseFile, key, clock)
  if (key !== undefined)
    throw new CommandError('-key needs the file of a license: the gateway uses its own key', EXIT.usage)
  const view = await admin(env, 'GET', '/v1/license')
  if (isShown(view)) return view
  throw new CommandError('the response of the gateway is not a license')
}

type Shown = Readonly<Record<string, string | number>>

function isShown(body: unknown): body is Shown {
  return isObject(body) && Object.values(body).every((value) => typeof value === 'string' || typeof value === 'number')
}

async function ofFile(file: string, key: string | undefined, clock: Clock): Promise<Shown> {
  const standing = file === '' ? NO_LICENSE : await standingIn(file, await authorityOf(key), clock)
  return { file: file || 'none', ...licenseView(standing) }
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
  throw new CommandError(`${file}: cannot be read, or has more than ${MAX_LICENSE_BYTES} bytes`, EXIT.found)
}
