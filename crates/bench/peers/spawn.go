// What Go does on one host, in the words of the bench: goroutines and channels.
//
// Built at run time by `isles-bench` and started as `spawn SECTION BATCH_MILLISECONDS REPETITIONS`, with SECTION
// `tasks`, `channels` or `pool`. Prints one line `measured NAME VALUE` for each figure, the median over the
// repetitions. It does not judge and knows no target. On how many processors it runs is GOMAXPROCS, which its starter
// may set.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"time"
)

const tasks = 1_000_000

// Starts a million goroutines that do nothing and waits for all of them.
func spawn(count int) {
	var group sync.WaitGroup
	group.Add(count)
	for i := 0; i < count; i++ {
		go func() { group.Done() }()
	}
	group.Wait()
}

// Sends a number there and back between two goroutines, without a buffer.
func pingPong(count int) {
	there, back := make(chan int), make(chan int)
	go func() {
		for v := range there {
			back <- v
		}
		close(back)
	}()
	for i := 0; i < count; i++ {
		there <- i
		<-back
	}
	close(there)
}

// Sends numbers one way through a buffer of 1,024.
func stream(count int) {
	way, done := make(chan int, 1024), make(chan int)
	go func() {
		sum := 0
		for v := range way {
			sum += v
		}
		done <- sum
	}()
	for i := 0; i < count; i++ {
		way <- i
	}
	close(way)
	<-done
}

// Fifty jobs of 15 ms over a channel without a buffer, to two goroutines: the seconds, and the lesser share.
func pool() (float64, float64) {
	jobs, start := make(chan int), time.Now()
	var group sync.WaitGroup
	var done [2]int
	for worker := range done {
		group.Add(1)
		go func() {
			defer group.Done()
			for range jobs {
				for begin := time.Now(); time.Since(begin) < 15*time.Millisecond; {
				}
				done[worker]++
			}
		}()
	}
	for job := 0; job < 50; job++ {
		jobs <- job
	}
	close(jobs)
	group.Wait()
	return time.Since(start).Seconds(), float64(min(done[0], done[1]))
}

// The median of the seconds one step takes, over the repetitions.
func median(repetitions, count int, step func(int)) float64 {
	step(count)
	seconds := make([]float64, repetitions)
	for i := range seconds {
		start := time.Now()
		step(count)
		seconds[i] = time.Since(start).Seconds() / float64(count)
	}
	sort.Float64s(seconds)
	return seconds[repetitions/2]
}

// The number of steps that fills a batch.
func calibrate(batch time.Duration, step func(int)) int {
	for count := 1; ; count *= 2 {
		start := time.Now()
		step(count)
		if time.Since(start) >= batch {
			return count
		}
	}
}

func number(word string) int {
	value, err := strconv.Atoi(word)
	if err != nil || value < 1 {
		fmt.Fprintf(os.Stderr, "%q: a whole number from 1 up is wanted\n", word)
		os.Exit(2)
	}
	return value
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: spawn SECTION BATCH_MILLISECONDS REPETITIONS")
		os.Exit(2)
	}
	batch, repetitions := time.Duration(number(os.Args[2]))*time.Millisecond, number(os.Args[3])
	fmt.Println("version", runtime.Version())
	switch section := os.Args[1]; section {
	case "tasks":
		fmt.Printf("measured spawn_ns %.6g\n", 1e9*median(repetitions, tasks, spawn))
	case "channels":
		fmt.Printf("measured half_round_trip_us %.6g\n", 1e6/2*median(repetitions, calibrate(batch, pingPong), pingPong))
		fmt.Printf("measured rate_million %.6g\n", 1/(1e6*median(repetitions, calibrate(batch, stream), stream)))
	case "pool":
		times, shares := make([]float64, repetitions), make([]float64, repetitions)
		for i := range times {
			times[i], shares[i] = pool()
		}
		sort.Float64s(times)
		sort.Float64s(shares)
		fmt.Printf("measured pool_ms %.6g\n", 1e3*times[repetitions/2])
		fmt.Printf("measured lesser_share %.6g\n", shares[repetitions/2])
	default:
		fmt.Fprintf(os.Stderr, "%q: tasks, channels or pool is wanted\n", section)
		os.Exit(2)
	}
}
