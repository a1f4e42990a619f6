// Changed rows per day as small bars; the numbers are told to who cannot see them.
const WIDTH = 100;
const HEIGHT = 20;

export function Sparkline({ values }: { values: readonly number[] }) {
  const most = Math.max(...values, 1);
  const step = WIDTH / Math.max(values.length, 1);
  const total = values.reduce((sum, value) => sum + value, 0);
  return (
    <svg
      className="spark"
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`${total} rows changed in ${values.length} days`}
    >
      {values.map((value, day) => {
        if (value === 0) return null;
        const height = Math.max(2, (value / most) * HEIGHT);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a bar is its day
          <rect key={day} x={day * step} y={HEIGHT - height} width={step - 1} height={height} rx={0.5} />
        );
      })}
    </svg>
  );
}
