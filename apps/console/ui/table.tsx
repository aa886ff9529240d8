import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { after } from '../app/clock.ts'
import type { Pages } from '../app/query.ts'
import { count } from './format.ts'
import { Empty, Problem } from './parts.tsx'

export interface Column<T> {
  readonly name: string
  /** A track of a CSS grid, such as `8rem` or `2fr`. */
  readonly width: string
  readonly isNumber?: boolean
  /** Whether narrow screens show it. */
  readonly isMain?: boolean
  /** Whether narrow screens show it above the others, on up to two lines: names can be long. */
  readonly isTitle?: boolean
  readonly cell: (item: T) => ComponentChildren
}

interface TableProps<T> {
  /** Name of the table for screen readers. */
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly pages: Pages<T>
  readonly keyOf: (item: T) => string
  /** Opens the item of the row with the focus by Enter; its first cell has the link for pointers. */
  readonly open?: (item: T) => void
  readonly empty: ComponentChildren
}

/** Height of a row; on narrow screens with a title above the other cells. The style sheet has the same width. */
const ROW_PX = 40
const TITLED_ROW_PX = 74
const NARROW = '(max-width: 720px)'
/** Rows above and below those that can be seen. */
const SPARE_ROWS = 8
/** The next page is loaded when the end is this near. */
const AHEAD_ROWS = 30
/** The position is read again after this time without a rendering, in milliseconds. */
const LOOK_AGAIN_MS = 300
/** A page that could not be loaded is requested again after this time, in milliseconds, while its rows are in view. */
const RETRY_MS = 3_000

/** A table of any length: only rows near the visible part are in the document, and further pages are loaded while it is scrolled. */
export function Table<T>(props: TableProps<T>) {
  const { pages, label, columns, empty } = props
  if (pages.data === null) {
    if (pages.error !== null) return <Problem error={pages.error} retry={pages.reload} />
    return <p class="faint">Loading …</p>
  }
  if (pages.data.length === 0 && pages.more === null && !pages.loading) return <>{empty}</>
  if (pages.data.length === 0 && pages.more === null) return <p class="faint">Loading …</p>
  return (
    <div class="table-block">
      <div
        role="table"
        aria-label={label}
        aria-rowcount={pages.more === null ? pages.data.length + 1 : -1}
        class="table"
      >
        <div role="rowgroup" class="table-head">
          <div role="row" class="row" style={gridOf(columns)}>
            {columns.map((column) => (
              <span role="columnheader" class={cellClass(column)}>
                {column.name}
              </span>
            ))}
          </div>
        </div>
        <Rows {...props} items={pages.data} />
      </div>
      <TableFoot pages={pages} />
    </div>
  )
}

function TableFoot<T>({ pages }: { readonly pages: Pages<T> }) {
  const rows = pages.data?.length ?? 0
  return (
    <div class="table-foot">
      <span>
        {count(rows)} {rows === 1 ? 'row' : 'rows'}
        {pages.more === null && !pages.loading ? '' : ' loaded'}
      </span>
      {pages.more !== null && (
        <button type="button" class="small" onClick={pages.more}>
          Load more
        </button>
      )}
      {pages.error !== null && <Problem error={pages.error} retry={pages.more ?? pages.reload} />}
    </div>
  )
}

/** The part of a list that can be seen, in pixels. `look` reads it again. */
function useView(box: { readonly current: HTMLDivElement | null }, rows: number) {
  const [view, setView] = useState({ top: 0, height: 600 })
  const look = () => {
    if (box.current === null) return
    const { scrollTop: top, clientHeight: height } = box.current
    setView((before) => (before.top === top && before.height === height ? before : { top, height }))
  }
  useEffect(look, [rows])
  // A scroll event can be lost while rows are added.
  useEffect(() => after(LOOK_AGAIN_MS, look))
  return { view, look }
}

function Rows<T>({ items, columns, keyOf, open, pages }: TableProps<T> & { readonly items: readonly T[] }) {
  const box = useRef<HTMLDivElement>(null)
  const { view, look } = useView(box, items.length)
  const rowPx = useRowPx(columns)
  const [active, setActive] = useState(0)
  const first = Math.max(0, Math.floor(view.top / rowPx) - SPARE_ROWS)
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowPx) + SPARE_ROWS)
  const isNearEnd = last >= items.length - AHEAD_ROWS && view.top > 0
  useEffect(() => {
    if (pages.more !== null && pages.error === null && isNearEnd) pages.more()
  })
  useEffect(() => {
    if (pages.error === null || pages.more === null || !isNearEnd) return
    return after(RETRY_MS, pages.more)
  }, [pages.error, isNearEnd])
  const pressed = (event: KeyboardEvent) => {
    const to = targetOf(event.key, active, { rows: items.length, page: Math.floor(view.height / rowPx) - 1 })
    const chosen = items[active]
    if (to === null && (event.key !== 'Enter' || event.target !== box.current || chosen === undefined)) return
    event.preventDefault()
    if (to === null) return chosen === undefined ? undefined : open?.(chosen)
    setActive(to)
    if (box.current !== null) reveal(box.current, to, rowPx)
  }
  return (
    <div
      role="rowgroup"
      class="table-body"
      ref={box}
      tabIndex={0}
      onScroll={look}
      onKeyDown={pressed}
      aria-label="Rows: arrow keys move, Enter opens"
    >
      <div style={{ height: `${items.length * rowPx}px`, position: 'relative' }} role="presentation">
        {items.slice(first, last).map((item, index) => (
          <div
            role="row"
            key={keyOf(item)}
            aria-rowindex={first + index + 2}
            class={first + index === active ? 'row active' : 'row'}
            style={{ ...gridOf(columns), height: `${rowPx}px`, top: `${(first + index) * rowPx}px` }}
          >
            {columns.map((column) => (
              <span role="cell" class={cellClass(column)}>
                {column.cell(item)}
              </span>
            ))}
          </div>
        ))}
      </div>
    </div>
  )
}

/** The height of the rows at the present width of the window. */
function useRowPx<T>(columns: readonly Column<T>[]): number {
  const [isNarrow, setNarrow] = useState(() => window.matchMedia(NARROW).matches)
  useEffect(() => {
    const query = window.matchMedia(NARROW)
    const changed = () => setNarrow(query.matches)
    query.addEventListener('change', changed)
    return () => query.removeEventListener('change', changed)
  }, [])
  return isNarrow && columns.some(({ isTitle }) => isTitle) ? TITLED_ROW_PX : ROW_PX
}

/** The row to which a key moves, or null. */
function targetOf(
  key: string,
  from: number,
  { rows, page }: { readonly rows: number; readonly page: number },
): number | null {
  const steps: Readonly<Record<string, number>> = {
    ...{ ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 },
    ...{ PageDown: Math.max(1, page), PageUp: -Math.max(1, page), Home: -rows, End: rows },
  }
  const step = steps[key]
  return step === undefined ? null : Math.max(0, Math.min(rows - 1, from + step))
}

/** Scrolls until a row can be seen. */
function reveal(box: HTMLElement, row: number, rowPx: number): void {
  const [top, bottom] = [row * rowPx, (row + 1) * rowPx]
  if (top < box.scrollTop) box.scrollTop = top
  if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight
}

function gridOf<T>(columns: readonly Column<T>[]) {
  const narrow = columns.filter(({ isMain, isTitle }) => isMain && !isTitle).map(({ width }) => width)
  const isElastic = narrow.some((width) => width.endsWith('fr'))
  // The title is as wide as all other columns together.
  const [first = '1fr', ...rest] = narrow
  return {
    '--wide': tracks(columns.map(({ width }) => width)),
    '--narrow': tracks(isElastic ? narrow : [`minmax(${first}, 1fr)`, ...rest]),
  }
}

function tracks(widths: readonly string[]): string {
  return widths.map((width) => (/^\d+fr$/.test(width) ? `minmax(0, ${width})` : width)).join(' ')
}

function cellClass<T>({ isNumber = false, isMain = false, isTitle = false }: Column<T>): string {
  return `cell${isNumber ? ' number' : ''}${isTitle ? ' title' : isMain ? '' : ' minor'}`
}

/** The state of a list without rows. */
export function NoRows({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return <Empty title={title}>{children}</Empty>
}
