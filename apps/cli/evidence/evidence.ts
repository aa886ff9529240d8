import { writeFile } from 'node:fs/promises'
import { reasonOf } from '@plat/core'
import { adminBytes, adminList, adminLong } from '../shared/admin-api.ts'
import { callerMembers } from '../shared/agent.ts'
import { findGateway, type GatewayOptions } from '../shared/gateway.ts'
import { CommandError, isForPeople, type Output, plain, type WideFormat } from '../shared/output.ts'
import { printData, printList } from '../shared/print.ts'

/** An object as listed by the admin API. */
interface EvidenceView {
  readonly id: string
  readonly at: string
  readonly by: string
  readonly about: Readonly<Record<string, string>>
  readonly from: number
  readonly to: number
  readonly records: number
  readonly anchored: boolean
}

const WISHES = ['session', 'agent', 'namespace', 'call', 'from', 'to'] as const

export type CreateOptions = GatewayOptions & { readonly [Wish in (typeof WISHES)[number]]?: string }

/** `plat evidence create`: has the gateway seal records. */
export async function evidenceCreate(options: CreateOptions, output: Output): Promise<number> {
  const { env } = await findGateway(options.dir)
  const named = { ...options, ...callerMembers(options) }
  const wish = Object.fromEntries(
    WISHES.flatMap((name) => (named[name] === undefined ? [] : [[name, named[name]] as const])),
  )
  const made = await adminLong(env, '/v1/evidence', wish)
  if (!isView(made)) throw new CommandError('the response of the gateway is not an evidence object')
  if (options.output !== 'table') printData(output, options.output, made)
  else {
    const { id, records, from, to, anchored } = made
    output.out(
      `sealed ${records} of the records ${from} to ${to}${anchored ? ', anchored in the transparency log' : ''}`,
    )
    output.out(`fetch them with: plat evidence get ${id}`)
  }
  return 0
}

export async function evidenceList(
  { dir, output: format }: GatewayOptions<WideFormat>,
  output: Output,
): Promise<number> {
  const { env } = await findGateway(dir)
  const found = await adminList(env, '/v1/evidence', isView)
  if (found.length === 0 && isForPeople(format)) output.out('no evidence objects: make one with plat evidence create')
  else printList(output, format, found, columns)
  return 0
}

const columns = {
  id: ({ id }: EvidenceView) => plain(id),
  made: ({ at }: EvidenceView) => plain(at),
  by: ({ by }: EvidenceView) => plain(by),
  about: ({ about }: EvidenceView) =>
    plain(
      Object.entries(about)
        .map(([name, value]) => `${name}=${value}`)
        .join(' ') || 'everything',
    ),
  records: ({ records, from, to }: EvidenceView) => `${records} of ${from}-${to}`,
  anchored: ({ anchored }: EvidenceView) => (anchored ? 'yes' : 'no'),
}

export interface GetOptions {
  readonly dir?: string | undefined
  readonly id: string
  readonly file: string
}

/** `plat evidence get`: never overwrites a file. */
export async function evidenceGet({ dir, id, file }: GetOptions, output: Output): Promise<number> {
  const { env } = await findGateway(dir)
  const bytes = await adminBytes(env, `/v1/evidence/${encodeURIComponent(id)}/object`)
  await writeFile(file, bytes, { flag: 'wx' }).catch((error: unknown) => {
    throw new CommandError(`${file} cannot be written: ${reasonOf(error)}`)
  })
  output.out(`${file}: ${bytes.length} bytes; check it with: plat evidence verify ${file} -key <public key>`)
  return 0
}

function isView(value: unknown): value is EvidenceView {
  if (typeof value !== 'object' || value === null || !('id' in value) || !('about' in value)) return false
  return typeof value.id === 'string' && typeof value.about === 'object' && value.about !== null && 'records' in value
}
