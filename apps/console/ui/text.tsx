import { useState } from 'preact/hooks'
import { count } from './format.ts'
import { headOf, partsOf } from './visible.ts'

/** A longer text is cut until its reader wants more: a browser lays out long ones slowly. */
const FIRST_CHARS = 2_000
const MORE_CHARS = 50_000

/** A text of an agent, a tool, a model or a user: never markup, isolated from its surroundings, and nothing in it hidden. */
export function Text({ of }: { readonly of: string }) {
  return (
    <span class="text">
      {partsOf(of).map(({ text, isNamed }) =>
        isNamed ? (
          <span class="hidden-char" title="A character that cannot be seen">
            {text}
          </span>
        ) : (
          text
        ),
      )}
    </span>
  )
}

/** A short text on one line: the rest is cut by the column, and shown as a title. */
export function Name({ of }: { readonly of: string | null | undefined }) {
  if (of === null || of === undefined || of === '') return <span class="faint">–</span>
  const head = of.length > 300 ? `${headOf(of, 300)}…` : of
  return <Text of={head} />
}

/** A text of any length, with a button for more of it. */
export function LongText({ of }: { readonly of: string }) {
  const [chars, setChars] = useState(FIRST_CHARS)
  const rest = of.length - chars
  return (
    <div class="long-text">
      <pre>
        <Text of={headOf(of, chars)} />
      </pre>
      {rest > 0 && (
        <button type="button" class="small" onClick={() => setChars(chars + MORE_CHARS)}>
          Show {count(Math.min(rest, MORE_CHARS))} of {count(rest)} more characters
        </button>
      )}
    </div>
  )
}
