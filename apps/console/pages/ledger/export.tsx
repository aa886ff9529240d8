import { useState } from 'preact/hooks'
import type { Client } from '../../api/client.ts'
import { asApiError } from '../../app/query.ts'
import { useShared } from '../../app/session.ts'
import { counted } from '../../ui/format.ts'

/** Filters of a search, without its order and its page. */
type Query = Readonly<Record<string, string | boolean>>

const PAGE_SIZE = 1_000
/** More records belong into an evidence object, or are exported by `plat audit export`. */
const MAX_RECORDS = 100_000

/** Saves the records of the search as JSON lines, the oldest first, each as the ledger has it. */
export function ExportButton({ query }: { readonly query: Query }) {
  const { client, notify } = useShared()
  const [stop, setStop] = useState<AbortController | null>(null)
  const [count, setCount] = useState(0)
  const start = async () => {
    const control = new AbortController()
    setStop(control)
    setCount(0)
    try {
      const { lines, isWhole } = await linesOf(client, query, { signal: control.signal, progress: setCount })
      save(lines)
      notify(
        isWhole
          ? `${counted(lines.length, 'record')} exported`
          : `The first ${counted(lines.length, 'record')} exported; plat audit export has no limit`,
        isWhole ? 'good' : 'bad',
      )
    } catch (error) {
      if (!control.signal.aborted) notify(asApiError(error).message, 'bad')
    }
    setStop(null)
  }
  if (stop === null) {
    return (
      <button type="button" class="small" onClick={() => void start()}>
        Export these records
      </button>
    )
  }
  return (
    <button type="button" class="small" onClick={() => stop.abort()}>
      {counted(count, 'record')} so far: stop
    </button>
  )
}

async function linesOf(
  client: Client,
  query: Query,
  { signal, progress }: { readonly signal: AbortSignal; readonly progress: (count: number) => void },
): Promise<{ readonly lines: readonly string[]; readonly isWhole: boolean }> {
  const lines: string[] = []
  for (let cursor = ''; lines.length < MAX_RECORDS; ) {
    const page = await client.call('GET /v1/audit/records', {
      query: { ...query, order: 'oldest', limit: PAGE_SIZE, ...(cursor !== '' && { cursor }) },
      signal,
    })
    for (const item of page.items) lines.push(`${JSON.stringify(item)}\n`)
    progress(lines.length)
    if (page.nextCursor === null) return { lines, isWhole: true }
    cursor = page.nextCursor
  }
  return { lines, isWhole: false }
}

function save(lines: readonly string[]): void {
  const url = URL.createObjectURL(new Blob([...lines], { type: 'application/jsonl' }))
  const link = document.createElement('a')
  link.href = url
  link.download = 'records.jsonl'
  link.click()
  URL.revokeObjectURL(url)
}
