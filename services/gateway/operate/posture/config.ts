import { defineBlock, key, type Rule } from '@plat/config'
import { closest } from '@plat/core'
import Type from 'typebox'
import { checks } from './checks.ts'

const IDS = checks.map(({ id }) => id)

/** A misspelled id would accept nothing. */
const idsAreKnown: Rule = ({ accept }) =>
  (Array.isArray(accept) ? accept : []).flatMap((id: unknown, index) =>
    typeof id !== 'string' || IDS.includes(id)
      ? []
      : [
          {
            path: `posture.accept[${index}]`,
            message: unknown(id),
            severity: 'error' as const,
          },
        ],
  )

function unknown(id: string): string {
  const meant = closest(id, IDS)
  return meant === null ? 'no such check' : `no such check; did you mean ${meant}?`
}

/** `posture` (docs/spec/gateway.md): the posture check at startup and in `plat posture`. */
export const postureBlock = defineBlock({
  path: 'posture',
  feature: 'posture',
  schema: Type.Object({
    replicas: key.whole('Deployed replica count for the posture check; 0 is not known.', 0),
    accept: key.texts('Check ids accepted as risks.'),
  }),
  rules: [idsAreKnown],
})
