import { detectorRows } from './detectors/table.ts'

/** Writes the page of the detectors from their table. */
export function detectorsReference(): string {
  const rows = detectorRows().map(({ id, secret, byDefault, finds, validated }) => {
    const kind = secret ? 'secret' : 'personal'
    return `| \`${id}\` | ${kind} | ${byDefault ? 'yes' : 'no'} | ${finds} | ${validated} |`
  })
  return `# Detectors

Written from the gateway's tables by \`node services/gateway/reference.ts\`; do not edit. [dlp.md](../dlp.md) says how profiles use them.

| id | kind | default | finds | validated by |
|---|---|---|---|---|
${rows.join('\n')}
`
}
