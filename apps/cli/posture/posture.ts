import { isObject } from '@plat/core'
import { type Check, findings, idleAccepts } from '@plat/gateway/posture'
import { admin } from '../shared/admin-api.ts'
import { EXIT } from '../shared/exit-codes.ts'
import { findGateway } from '../shared/gateway.ts'
import { gatewayConfig } from '../shared/gateway-config.ts'
import { CommandError, type Format, type Output } from '../shared/output.ts'
import { printList } from '../shared/print.ts'

export interface PostureOptions {
  /** A gateway.json; undefined: that of the running plat. */
  readonly path?: string | undefined
  readonly dir?: string | undefined
  readonly output: Format
}

/** Risks of a configuration. */
interface Found {
  /** A file, or the address of a gateway. */
  readonly of: string
  readonly items: readonly Row[]
  /** Accepted risks that it does not have. */
  readonly idleAccepts: readonly string[]
}

/**
 * `plat posture`: the risks that a gateway logs at startup, of a file, else of the gateway.
 * @returns 0 for no risk, 3 for some or an invalid file
 */
export async function posture({ path, dir, output: format }: PostureOptions, output: Output): Promise<number> {
  const { of, items, idleAccepts } = path === undefined ? await runningPosture(dir) : filePosture(path)
  for (const id of idleAccepts) output.err(`posture.accept: ${id} is not a risk of this file any more`)
  if (items.length === 0 && format === 'table') output.out(`no risks: ${of}`)
  else printList(output, format, items, columns)
  return items.length === 0 ? EXIT.done : EXIT.found
}

async function runningPosture(dir: string | undefined): Promise<Found> {
  const { home, env } = await findGateway(dir)
  if (home !== null) return filePosture(home.gatewayConfig)
  const found = await admin(env, 'GET', '/v1/posture')
  if (!isPosture(found)) throw new CommandError('the response of the gateway is not a list of risks')
  return { of: env.PLAT_ADMIN_URL, ...found }
}

function filePosture(file: string): Found {
  const typed = gatewayConfig(file)
  const items = findings(typed).map(({ id, risk, fix }) => ({ id, risk, fix }))
  return { of: file, items, idleAccepts: idleAccepts(typed) }
}

function isPosture(body: unknown): body is Omit<Found, 'of'> {
  return isObject(body) && Array.isArray(body.items) && body.items.every(isRow) && Array.isArray(body.idleAccepts)
}

function isRow(item: unknown): item is Row {
  return isObject(item) && [item.id, item.risk, item.fix].every((text) => typeof text === 'string')
}

type Row = Pick<Check, 'id' | 'risk' | 'fix'>

const columns = {
  check: ({ id }: Row) => id,
  risk: ({ risk }: Row) => risk,
  fix: ({ fix }: Row) => fix,
}
