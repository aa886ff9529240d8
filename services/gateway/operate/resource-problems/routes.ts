import { type Static, Type } from 'typebox'
import type { AdminRoutes } from '../../admin/index.ts'

/** Problems of the resources in files, one line each: `<file>:<line>: <text>` where the place is known. */
export interface ResourceProblems {
  /** Declared and not in force. */
  readonly refused: readonly string[]
  /** In force, and probably not meant. */
  readonly warnings: readonly string[]
}

const PROBLEMS_MAX = 500

const problemSchema = Type.Object({
  severity: Type.Enum(['refused', 'warning'], {
    type: 'string',
    description: '`refused`: declared and not in force; `warning`: in force, and probably not meant.',
  }),
  file: Type.Union([Type.String(), Type.Null()]),
  line: Type.Union([Type.Integer(), Type.Null()]),
  text: Type.String(),
})

export const problemsSchema = Type.Object({
  known: Type.Boolean({
    description: 'False: this process does not read resources from files; their status has problems.',
  }),
  items: Type.Array(problemSchema, { maxItems: PROBLEMS_MAX }),
})

type ResourceProblem = Static<typeof problemSchema>

/** `GET /v1/problems`. `find`: absent where resources are not read from files. */
export function createResourceProblems(find: (() => Promise<ResourceProblems>) | undefined): AdminRoutes {
  return {
    mount(context) {
      context.on('GET /v1/problems', async () => {
        if (find === undefined) return { known: false, items: [] }
        const { refused, warnings } = await find()
        const items = [
          ...refused.map((text) => problemIn(text, 'refused')),
          ...warnings.map((text) => problemIn(text, 'warning')),
        ]
        return { known: true, items: items.slice(0, PROBLEMS_MAX) }
      })
    },
  }
}

/** Line of a file, then the problem. */
const PLACE = /^(\S{1,1024}?):(\d{1,9})(?::\d{1,9})?: (.*)$/s

function problemIn(text: string, severity: ResourceProblem['severity']): ResourceProblem {
  const [, file, line, rest] = PLACE.exec(text) ?? []
  if (file === undefined || rest === undefined) return { severity, file: null, line: null, text }
  return { severity, file, line: Number(line), text: rest }
}
