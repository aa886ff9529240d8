import { memberOf, numberIn, textIn } from '../../api/client.ts'
import { useLoaded } from '../../app/query.ts'
import { linkTo } from '../../app/route.ts'
import { useShared } from '../../app/session.ts'
import { count } from '../../ui/format.ts'
import { Badge } from '../../ui/parts.tsx'
import { Name, Text } from '../../ui/text.tsx'

/** The last step of a proof: an entry of the transparency log with a checkpoint over this record. */
export function Anchor({ seq }: { readonly seq: number }) {
  const { client } = useShared()
  const { data } = useLoaded('anchor', (signal) =>
    client.call('GET /v1/audit/records', { query: { kind: 'anchor', order: 'newest', limit: 1 }, signal }),
  )
  const [last] = data?.items ?? []
  const size = numberIn(last?.rec, 'size') ?? 0
  if (last === undefined || size <= seq) {
    return (
      <li>
        <p>
          <Badge>not anchored</Badge> No entry of a transparency log covers this record
          {last === undefined ? ', or you cannot see it' : ' yet'}.
        </p>
      </li>
    )
  }
  return (
    <li>
      <p>
        <Badge tone="info">recorded</Badge> A checkpoint over the first {count(size)} records is in the transparency
        log. <code>plat audit verify -log-key</code> verifies the entry.
      </p>
      <ul>
        <li>
          <span class="faint">log</span> <Name of={textIn(last.rec, 'url')} />
        </li>
        <li>
          <span class="faint">entry</span> {count(numberIn(memberOf(last.rec, 'log'), 'index') ?? 0)}, record{' '}
          <a href={linkTo('ledger', last.seq)}>{count(last.seq)}</a>
        </li>
        <li>
          <span class="faint">head</span>{' '}
          <code class="digest">
            <Text of={textIn(last.rec, 'head') ?? ''} />
          </code>
        </li>
      </ul>
    </li>
  )
}
