import { type PoolRow, poolTable } from '@plat/core'

const INTRODUCTION = `# Pools

Written from the table of pools by \`node services/gateway/reference.ts\`; do not edit. [limits.md](../limits.md) explains what a pool and a share
are. The column "pool" is the value of the label \`pool\` of the series \`plat_gateway_pool_…\` and \`plat_attest_pool_…\`, and of the field \`pool\` in
the logs of the broker and of the bridge.
`

const SERVICES = [
  ['gateway', 'Gateway'],
  ['broker', 'Identity broker'],
  ['attestation', 'Attestation service'],
  ['stdio', 'Stdio bridge'],
] as const

const MIB = 1024 * 1024

/** docs/reference/pools.md. */
export function poolsReference(): string {
  const sections = SERVICES.map(([service, title]) => {
    const rows = Object.entries<PoolRow>(poolTable).filter(([, { services }]) => services.includes(service))
    const lines = rows.map(([name, row]) => `| ${cellsOf(name, row).join(' | ')} |`)
    return `\n## ${title}\n\n${HEAD}${lines.join('\n')}\n`
  })
  return INTRODUCTION + sections.join('')
}

const HEAD = `| pool | what is counted | total | share | age | what a refused caller gets |
|---|---|---|---|---|---|
`

function cellsOf(name: string, row: PoolRow): readonly string[] {
  const { counts, each, shares, varies, age, refused } = row
  const totals = `${varies?.total ?? totalOf(row)}${each === undefined ? '' : ` for each ${each}`}`
  const limits = shares.map(({ of, max }) => `${varies?.share ?? amount(max, row)} for each ${of}`)
  return [`\`${name}\``, counts, totals, limits.join('; '), age, refused]
}

function totalOf(row: PoolRow): string {
  return Number.isFinite(row.total) ? amount(row.total, row) : 'none'
}

function amount(units: number, { unit }: PoolRow): string {
  return unit === 'bytes' ? `${units / MIB} MiB` : units.toLocaleString('en-US')
}
