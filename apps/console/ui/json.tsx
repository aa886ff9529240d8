import { useMemo, useRef, useState } from 'preact/hooks'
import { type DiffLine, diffLines } from './diff.ts'
import { count } from './format.ts'
import { type JsonRow, jsonRows, rowText } from './json-rows.ts'
import { Text } from './text.tsx'

const LINE_PX = 20
const SPARE_LINES = 20
/** Deeper members are not indented further, and show their depth. */
const MAX_INDENT = 24

type Line = DiffLine<JsonRow>

/** JSON as text, with every character visible. With `before`, the lines that differ are marked. Only lines near the visible part are in the document. */
export function Json({
  text,
  before,
  label,
}: {
  readonly text: string
  readonly before?: string | undefined
  readonly label: string
}) {
  const lines = useMemo(() => linesOf(text, before), [text, before])
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 480 })
  const first = Math.max(0, Math.floor(view.top / LINE_PX) - SPARE_LINES)
  const last = Math.ceil((view.top + view.height) / LINE_PX) + SPARE_LINES
  const look = () => {
    if (box.current !== null) setView({ top: box.current.scrollTop, height: box.current.clientHeight })
  }
  return (
    <div class="json">
      <div class="json-box" ref={box} tabIndex={0} role="region" aria-label={label} onScroll={look}>
        <div class="json-lines" style={{ height: `${lines.length * LINE_PX}px` }}>
          <div style={{ transform: `translateY(${first * LINE_PX}px)` }}>
            {lines.slice(first, last).map((line) => (
              <JsonLine line={line} />
            ))}
          </div>
        </div>
      </div>
      {lines.length > 24 && <p class="faint">{count(lines.length)} lines: all of them are here, scroll to read</p>}
    </div>
  )
}

function JsonLine({ line: { change, line } }: { readonly line: Line }) {
  const { depth, pieces, continues } = line
  const mark = { same: '', added: '+', removed: '−' }[change]
  return (
    <div class={`json-line ${change}`} style={{ '--depth': String(Math.min(depth, MAX_INDENT)) }}>
      {change !== 'same' && <span class="sr">{change}: </span>}
      <span class="json-gutter" aria-hidden="true">
        {mark}
      </span>
      {depth > MAX_INDENT && !continues && <span class="faint">[{depth}] </span>}
      {continues && <span class="faint">↪ </span>}
      {pieces.map(({ kind, text }) => (
        <span class={`json-${kind}`}>
          <Text of={text} />
        </span>
      ))}
    </div>
  )
}

function linesOf(text: string, before: string | undefined): readonly Line[] {
  const rows = jsonRows(text)
  if (before === undefined) return rows.map((line) => ({ change: 'same', line }))
  return diffLines(jsonRows(before), rows, rowText)
}
