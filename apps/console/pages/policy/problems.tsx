import type { Result } from '../../api/client.ts'
import { useLoaded } from '../../app/query.ts'
import { useShared } from '../../app/session.ts'
import { Badge, Empty, Problem, Section } from '../../ui/parts.tsx'
import { Name, Text } from '../../ui/text.tsx'

type Found = Result<'GET /v1/problems'>['items'][number]

/** Problems of all resources, with file and line. */
export function ResourceProblems() {
  const { client } = useShared()
  const { data, error, reload } = useLoaded('problems', (signal) => client.call('GET /v1/problems', { signal }))
  if (error?.code === 'forbidden') return null
  return (
    <Section title="Problems of resources">
      {error !== null && <Problem error={error} retry={reload} />}
      {data?.known === false && (
        <p class="note">
          This gateway does not read resources from files. Problems are in their status: kubectl get
          agents,mcpservers,toolpolicies -A, and plat validate before they are applied.
        </p>
      )}
      {data?.known === true && data.items.length === 0 && <Empty title="No problem is found" />}
      {data !== null && data.items.length > 0 && (
        <ul class="risks">
          {data.items.map((one) => (
            <Line problem={one} />
          ))}
        </ul>
      )}
    </Section>
  )
}

function Line({ problem: { severity, file, line, text } }: { readonly problem: Found }) {
  return (
    <li>
      <Badge tone={severity === 'refused' ? 'bad' : 'warn'}>
        {severity === 'refused' ? 'not in force' : 'warning'}
      </Badge>{' '}
      {file !== null && (
        <code>
          <Name of={`${file}:${line ?? ''}`} />
        </code>
      )}
      <div>
        <Text of={text.slice(0, 2_000)} />
      </div>
    </li>
  )
}
